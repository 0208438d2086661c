//! Signed notes (c2sp.org/signed-note) with Ed25519 keys, and the checkpoints in them (c2sp.org/tlog-checkpoint). Does
//! no I/O, but asks the system for random bytes.

use std::{fmt, path::Path};

use data_encoding::{BASE64, HEXLOWER};
use ring::{
    rand::{SecureRandom as _, SystemRandom},
    signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey},
};

use super::SealError;
use crate::copy::Sha256;

/// A public key and its name. `Display` and `parse` use the vkey format of c2sp.org/signed-note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    public: [u8; 32],
}

pub(super) struct SigningKey {
    pair: Ed25519KeyPair,
    pub(super) public: VerifierKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// Ends in a line feed.
    pub(super) text: String,
    /// For each signature: the name of its key, and the key's id followed by the signature itself.
    signatures: Vec<(String, Vec<u8>)>,
}

/// A checkpoint: the name of the log, the number of entries in its tree, and the root hash of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub origin: String,
    pub size: u64,
    pub root: Sha256,
    /// The new key, if this checkpoint announces one. The old and the new key sign such a checkpoint.
    pub next_key: Option<VerifierKey>,
}

/// Why a text is not accepted as a note, a checkpoint or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("it is not a checkpoint (c2sp.org/signed-note), or it is damaged")]
    Note,
    #[error("it is not a checkpoint (c2sp.org/tlog-checkpoint), or it is damaged")]
    Checkpoint,
    #[error("it is not an Ed25519 public key (c2sp.org/signed-note); restore this file")]
    Key,
    #[error(
        "it has no private key (32 bytes in base64). If nothing was sealed here yet, remove it, and robotgate creates \
         a key. Otherwise, restore the whole seal folder from one backup"
    )]
    Seed,
    #[error("its signature is wrong: the file was changed or damaged")]
    Signature,
    #[error(
        "no key of the seal folder signed it: it is the wrong file, or the seal folder was replaced, perhaps by an old \
         backup"
    )]
    Unsigned,
    #[error("an older key than that of --key signed it; if you trust the older key too, put both into the --key file")]
    OlderKey,
    #[error(
        "do not trust this checkpoint: its key was replaced after {0} lines, but somebody has used the old key for \
         this later checkpoint. Find out who has the old key. If this is the checkpoint in the seal folder, restore the \
         whole seal folder from one backup"
    )]
    Replaced(u64),
}

// === impl NoteError ===

impl NoteError {
    pub(super) fn of(path: &Path) -> impl Fn(Self) -> SealError {
        move |error| SealError::Note {
            path: path.to_owned(),
            error,
        }
    }
}

// === impl VerifierKey ===

impl VerifierKey {
    /// Parses a public key in the vkey format of c2sp.org/signed-note.
    ///
    /// # Errors
    /// Fails if the text is not a vkey, or its key is not an Ed25519 key.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let mut parts = text.trim_end().splitn(3, '+');
        let mut part = || parts.next().ok_or(NoteError::Key);
        let (name, id, key) = (part()?, part()?, part()?);
        let key = BASE64.decode(key.as_bytes()).map_err(|_| NoteError::Key)?;
        let public = key.strip_prefix(&[ED25519_TYPE]).and_then(|key| key.try_into().ok());
        let key = Self {
            name: checked_name(name).ok_or(NoteError::Key)?.to_owned(),
            public: public.ok_or(NoteError::Key)?,
        };
        match key.id_text() == id {
            true => Ok(key),
            false => Err(NoteError::Key),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> [u8; 4] {
        let input = [self.name.as_bytes(), b"\n", &[ED25519_TYPE], &self.public].concat();
        let [a, b, c, d, ..] = Sha256::of(&input).0;
        [a, b, c, d]
    }

    pub fn id_text(&self) -> String {
        HEXLOWER.encode(&self.id())
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = BASE64.encode(&[&[ED25519_TYPE], &self.public[..]].concat());
        write!(f, "{}+{}+{key}", self.name, self.id_text())
    }
}

/// Returns `name` if it can be the name of a key or a log.
pub(crate) fn checked_name(name: &str) -> Option<&str> {
    let is_bad = |character: char| character.is_whitespace() || character.is_control() || character == '+';
    (!name.is_empty() && !name.contains(is_bad)).then_some(name)
}

// === impl SigningKey ===

impl SigningKey {
    /// `seed` is 32 random bytes in base64. `checked_name` must accept `name`.
    pub(super) fn of_seed(name: &str, seed: &[u8]) -> Result<Self, NoteError> {
        let seed = BASE64.decode(seed.trim_ascii_end()).map_err(|_| NoteError::Seed)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| NoteError::Seed)?;
        let public = VerifierKey {
            name: name.to_owned(),
            public: pair.public_key().as_ref().try_into().map_err(|_| NoteError::Seed)?,
        };
        Ok(Self { pair, public })
    }
}

/// Returns the seed of a new private key: 32 random bytes in base64, and a line feed.
pub(super) fn new_seed() -> Result<String, std::io::Error> {
    let mut seed = [0; 32];
    let filled = SystemRandom::new().fill(&mut seed);
    filled.map_err(|_| std::io::Error::other("the system provides no random numbers"))?;
    Ok(BASE64.encode(&seed) + "\n")
}

// === impl Note ===

impl Note {
    /// The text must end in a line feed.
    pub(super) fn sign(text: String, keys: &[&SigningKey]) -> String {
        keys.iter().fold(text.clone() + "\n", |note, key| {
            let signature = key.pair.sign(text.as_bytes());
            let bytes = BASE64.encode(&[&key.public.id(), signature.as_ref()].concat());
            format!("{note}\u{2014} {} {bytes}\n", key.public.name)
        })
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        Self::parsed(bytes).ok_or(NoteError::Note)
    }

    fn parsed(bytes: &[u8]) -> Option<Self> {
        let note = str::from_utf8(bytes).ok()?;
        let is_control = |byte: u8| byte < 0x20 && byte != b'\n';
        if note.len() > MAX_NOTE || note.bytes().any(is_control) {
            return None;
        }
        let end = note.rfind("\n\n")?;
        let (text, lines) = (&note[..=end], &note[end + 2..]);
        let signature = |line: &str| {
            let (name, bytes) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
            let bytes = BASE64.decode(bytes.as_bytes()).ok().filter(|bytes| bytes.len() > 4)?;
            Some((checked_name(name)?.to_owned(), bytes))
        };
        let signatures = lines.strip_suffix('\n')?.split('\n').map(signature);
        Some(Self {
            text: text.to_owned(),
            signatures: signatures.collect::<Option<_>>()?,
        })
    }

    /// Returns whether the key signed the note. Fails if a signature claims to be by this key, but is wrong.
    pub(super) fn is_signed_by(&self, key: &VerifierKey) -> Result<bool, NoteError> {
        let of_name = self.signatures.iter().filter(|(name, _)| *name == key.name);
        let mut of_key = of_name.filter_map(|(_, bytes)| bytes.strip_prefix(&key.id()));
        of_key.try_fold(false, |_, signature| {
            let verified = UnparsedPublicKey::new(&ED25519, &key.public).verify(self.text.as_bytes(), signature);
            verified.map(|()| true).map_err(|_| NoteError::Signature)
        })
    }
}

// === impl Checkpoint ===

impl Checkpoint {
    /// Ignores unknown extension lines.
    pub(super) fn parse(text: &str) -> Result<Self, NoteError> {
        Self::parsed(text).ok_or(NoteError::Checkpoint)
    }

    fn parsed(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
        let [origin, size, root, extensions @ ..] = &*lines else {
            return None;
        };
        if origin.is_empty() || extensions.iter().any(|line| line.is_empty()) {
            return None;
        }
        let number: u64 = size.parse().ok()?;
        let root = BASE64.decode(root.as_bytes()).ok()?;
        let next_key = extensions.iter().find_map(|line| line.strip_prefix(NEXT_KEY));
        Some(Self {
            origin: (*origin).to_owned(),
            // Refuses `+1` and `01`.
            size: (number.to_string() == *size).then_some(number)?,
            root: Sha256(root.try_into().ok()?),
            next_key: next_key.map(VerifierKey::parse).transpose().ok()?,
        })
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, BASE64.encode(&self.root.0))?;
        match &self.next_key {
            Some(key) => writeln!(f, "{NEXT_KEY}{key}"),
            None => Ok(()),
        }
    }
}

const ED25519_TYPE: u8 = 1;
/// The beginning of the extension line that contains a new key.
const NEXT_KEY: &str = "next-key ";
/// Maximum size of a note, in bytes. Leaves room for many signatures.
const MAX_NOTE: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const VKEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    const NOTE: &str = "This is an example message.\n\n\
        \u{2014} example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

    #[test]
    fn the_example_of_the_specification_is_read_and_verified() {
        let key = VerifierKey::parse(VKEY).unwrap();
        assert_eq!((key.to_string(), key.name()), (VKEY.to_owned(), "example.com/foo"));
        let note = Note::parse(NOTE.as_bytes()).unwrap();
        assert_eq!(note.text, "This is an example message.\n");
        assert_eq!(note.is_signed_by(&key), Ok(true));
        let other = Note::parse(NOTE.replace("example message", "Example message").as_bytes()).unwrap();
        assert_eq!(other.is_signed_by(&key), Err(NoteError::Signature));
        let unknown = SigningKey::of_seed("example.com/foo", new_seed().unwrap().as_bytes());
        let unknown = unknown.unwrap().public;
        assert_eq!(note.is_signed_by(&unknown), Ok(false), "an unknown key is ignored");
    }

    #[test]
    fn malformed_notes_are_refused() {
        for bad in [
            "",
            "text\n",
            "text\n\n",
            "text\n\nname bytes\n",
            &NOTE.replace("This", "\tThis"),
            &NOTE.replace("foo Uw", "f oo Uw"),
            &NOTE.replace("aQM=", "aQM"),
            NOTE.trim_end(),
        ] {
            assert_eq!(Note::parse(bad.as_bytes()), Err(NoteError::Note), "{bad:?}");
        }
        let text = "a\n\nb\n";
        let note = Note::parse(NOTE.replace("This is an example message.\n", text).as_bytes());
        assert_eq!(note.unwrap().text, text, "the last empty line ends the text");
    }

    #[test]
    fn the_same_seed_gives_the_same_key_and_malformed_keys_are_refused() {
        let seed = new_seed().unwrap();
        let key = SigningKey::of_seed("example.com/a", seed.as_bytes()).unwrap();
        let again = SigningKey::of_seed("example.com/a", seed.as_bytes()).unwrap();
        let note = Note::sign("a\n".to_owned(), &[&again]);
        assert_eq!(
            Note::parse(note.as_bytes()).unwrap().is_signed_by(&key.public),
            Ok(true)
        );
        assert!(SigningKey::of_seed("example.com/a", &seed.as_bytes()[4..]).is_err());
        let other_name = VKEY.replace("foo", "bar");
        for bad in [
            "",
            "a+b",
            &VKEY.replace("+A", "+B"),
            &other_name,
            &VKEY[..VKEY.len() - 4],
        ] {
            assert_eq!(VerifierKey::parse(bad), Err(NoteError::Key), "{bad}");
        }
    }

    #[test]
    fn a_checkpoint_round_trips_and_malformed_ones_are_refused() {
        let example = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
        let mut checkpoint = Checkpoint::parse(example).unwrap();
        assert_eq!(
            (checkpoint.to_string(), checkpoint.size),
            (example.to_owned(), 20_852_163)
        );
        checkpoint.next_key = Some(VerifierKey::parse(VKEY).unwrap());
        assert_eq!(Checkpoint::parse(&checkpoint.to_string()).unwrap(), checkpoint);
        for bad in [
            "",
            &example[1 + example.find('\n').unwrap()..],
            &example.replace("20852163", "020852163"),
            &example.replace("20852163", "+20852163"),
            &example.replace("CsUY", ""),
            &format!("{example}\n"),
        ] {
            assert_eq!(Checkpoint::parse(bad), Err(NoteError::Checkpoint), "{bad:?}");
        }
    }
}
