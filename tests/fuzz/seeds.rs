//! A fuzzer's first inputs.

use std::{fs, io, path::Path};

/// Writes every seed into the corpus of a target, each to a file.
///
/// # Panics
/// If the corpus cannot be written, because a fuzzer without seeds would find little and seem successful.
pub fn write<N: AsRef<str>, S: AsRef<[u8]>>(target: &str, seeds: impl IntoIterator<Item = (N, S)>) {
    let corpus = Path::new(CORPORA).join(target);
    if let Err(error) = try_write(&corpus, seeds) {
        panic!("{}: {error}", corpus.display());
    }
}

fn try_write<N: AsRef<str>, S: AsRef<[u8]>>(corpus: &Path, seeds: impl IntoIterator<Item = (N, S)>) -> io::Result<()> {
    fs::create_dir_all(corpus)?;
    for (name, seed) in seeds {
        fs::write(corpus.join(name.as_ref()), seed)?;
    }
    Ok(())
}

const CORPORA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
