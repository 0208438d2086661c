//! Makes proofs that a line is sealed (c2sp.org/tlog-proof). They can be checked without the rest of the log.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;

use super::{
    SealError,
    folder::Folder,
    keys::Chain,
    lines::Lines,
    tree::{inclusion_proof, leaf},
};
use crate::{audit::RecordHead, copy::Sha256, files};

/// A line and its proof.
#[derive(Debug)]
pub struct Proven {
    /// The `event` field of the line: `decision`, `completion` and so on.
    pub event: String,
    /// The line without its line feed. Its SHA-256 is the entry with the number `entry`.
    pub line: Vec<u8>,
    pub entry: u64,
    /// Number of lines that the checkpoint in the proof covers.
    pub size: u64,
    /// The proof as text, with the signed checkpoint in it.
    pub proof: String,
}

/// Makes a proof for each line in `logs` whose record has this id. The proofs use the checkpoint in the file `older`,
/// or the folder's current one if `older` is `None`. Also returns the number of lines with this id that the checkpoint
/// does not cover.
///
/// # Errors
/// Fails if no line has the id, if no trusted key signed the checkpoint, if the checkpoint covers none of these lines
/// or does not fit the tree, or if a file is damaged or cannot be read.
pub fn prove(
    folder: &Path,
    id: &str,
    logs: &[PathBuf],
    older: Option<&Path>,
) -> Result<(Vec<Proven>, usize), SealError> {
    let folder = Folder(folder.to_owned());
    let chain = Chain::load(&folder, &[])?;
    let (bytes, current, _) = chain.checkpoint(&folder)?;
    let (held, held_root) = (current.size, current.root);
    let (bytes, checkpoint) = match older {
        None => (bytes, current),
        Some(path) => {
            let bytes = files::read(path).map_err(SealError::read(path))?;
            let checkpoint = chain.check(&bytes, path)?.0;
            if checkpoint.size > held {
                return Err(SealError::Unfit(path.to_owned()));
            }
            (bytes, checkpoint)
        }
    };
    let mut wanted: Vec<(Sha256, String, Vec<u8>)> = Vec::new();
    for path in logs {
        let mut lines = Lines::open(path, 0)?;
        while let Some(line) = lines.next_line()? {
            if memchr::memmem::find(line, id.as_bytes()).is_none() {
                continue;
            }
            let record = RecordHead::parse(line).filter(|record| record.id.as_deref() == Some(id));
            if let Some(event) = record.and_then(|record| record.event) {
                wanted.push((Sha256::of(line), event.into_owned(), line.to_vec()));
            }
        }
    }
    if wanted.is_empty() {
        return Err(SealError::NoLine(id.to_owned()));
    }
    let size = checkpoint.size;
    let mut proven = Vec::new();
    for (entry, sha256) in (0..)
        .zip(folder.entries(0, held))
        .take_while(|(entry, _)| *entry < size)
    {
        let sha256 = sha256?;
        let Some(at) = wanted.iter().position(|(wanted, ..)| *wanted == sha256) else {
            continue;
        };
        let (_, event, line) = wanted.remove(at);
        let (hashes, root) = inclusion_proof(leaf(&sha256.0), entry, size, held, &mut |name| folder.hashes(name))?;
        if root != checkpoint.root {
            let now = inclusion_proof(leaf(&sha256.0), entry, held, held, &mut |name| folder.hashes(name))?.1;
            return Err(match older.filter(|_| now == held_root) {
                Some(path) => SealError::Unfit(path.to_owned()),
                None => SealError::Damaged(folder.path("tile")),
            });
        }
        let hashes: String = hashes.iter().map(|hash| BASE64.encode(&hash.0) + "\n").collect();
        let checkpoint = String::from_utf8_lossy(&bytes);
        proven.push(Proven {
            event,
            line,
            entry,
            size,
            proof: format!("c2sp.org/tlog-proof@v1\nindex {entry}\n{hashes}\n{checkpoint}"),
        });
        if wanted.is_empty() {
            break;
        }
    }
    match proven.is_empty() {
        true => Err(SealError::NotCovered {
            id: id.to_owned(),
            is_current: older.is_none(),
        }),
        false => Ok((proven, wanted.len())),
    }
}
