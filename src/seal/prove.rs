//! Proves that lines are sealed (c2sp.org/tlog-proof).

use std::path::{Path, PathBuf};

use data_encoding::BASE64;

use super::{
    CHECKPOINT, SealError,
    folder::Folder,
    keys::Chain,
    lines::{Lines, entry_of, parse},
    tree::{inclusion_proof, leaf, root_of_proof},
    verify::leaves_from,
};
use crate::copy::Sha256;

/// A line and its proof.
#[derive(Debug)]
pub struct Proven {
    /// The event of the record: `decision`, `completion` and so on.
    pub event: String,
    /// The line without its line feed. The entry is its SHA-256.
    pub line: Vec<u8>,
    pub entry: u64,
    /// The proof, as text. It contains the checkpoint.
    pub proof: String,
}

/// Proves the lines of the records with an id. They can be in any of the files.
///
/// # Errors
/// Fails if there is no such line, one is not sealed, or a file cannot be read.
pub fn prove(folder: &Path, id: &str, logs: &[PathBuf]) -> Result<Vec<Proven>, SealError> {
    let folder = Folder(folder.to_owned());
    let chain = Chain::load(&folder, &[])?;
    let bytes = folder
        .read(CHECKPOINT)?
        .ok_or_else(|| SealError::Empty(folder.0.clone()))?;
    let (checkpoint, _) = chain.check(&bytes, &folder.path(CHECKPOINT))?;
    let mut wanted: Vec<(Sha256, String, Vec<u8>)> = Vec::new();
    for path in logs {
        let mut lines = Lines::open(path, 0)?;
        while let Some(line) = lines.next_line()? {
            if memchr::memmem::find(line, id.as_bytes()).is_none() {
                continue;
            }
            let record = parse(line).filter(|record| record.id.as_deref() == Some(id));
            let (entry, is_erased) = entry_of(line);
            // What was erased cannot be proven.
            if let Some(event) = record.and_then(|record| record.event)
                && !is_erased
            {
                wanted.push((leaf(&entry.0), event.into_owned(), line.to_vec()));
            }
        }
    }
    if wanted.is_empty() {
        return Err(SealError::NoLine(id.to_owned()));
    }
    let lines = wanted.len();
    let mut proven = Vec::new();
    for (entry, item) in (0..).zip(leaves_from(&folder, 0, checkpoint.size)) {
        if wanted.is_empty() {
            break;
        }
        let (hash, _) = item?;
        let Some(at) = wanted.iter().position(|(wanted, ..)| *wanted == hash) else {
            continue;
        };
        let (_, event, line) = wanted.remove(at);
        let hashes = inclusion_proof(entry, checkpoint.size, &mut |name| folder.tile(name))?;
        if root_of_proof(hash, entry, checkpoint.size, &hashes) != checkpoint.root {
            return Err(SealError::Damaged(folder.path("tile")));
        }
        let hashes: String = hashes.iter().map(|hash| BASE64.encode(&hash.0) + "\n").collect();
        let checkpoint = String::from_utf8_lossy(&bytes);
        proven.push(Proven {
            event,
            line,
            entry,
            proof: format!("c2sp.org/tlog-proof@v1\nindex {entry}\n{hashes}\n{checkpoint}"),
        });
    }
    match wanted.len() {
        0 => Ok(proven),
        missing => Err(SealError::NotSealed {
            id: id.to_owned(),
            missing,
            lines,
        }),
    }
}
