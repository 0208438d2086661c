//! The Merkle tree of RFC 6962 §2.1, and its layout as tiles (c2sp.org/tlog-tiles). Does no I/O: callers read and write
//! the tiles.

use std::fmt;

use sha2::Digest as _;

use crate::copy::Sha256;

/// The part of a Merkle tree that is needed to append entries: the hashes of its partial tiles.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    size: u64,
    /// For each level, the hashes after its last full tile: 255 at most.
    levels: Vec<Vec<Sha256>>,
}

/// A tile's place in the tree. `Display` writes its path in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileName {
    /// The level of the tile; `None` for a bundle of entries.
    pub(super) level: Option<u8>,
    pub(super) index: u64,
    /// Number of hashes or entries, from 1 to 256. A tile of fewer than 256 is partial.
    pub(super) width: usize,
}

// === impl Tree ===

impl Tree {
    pub(super) fn load<E>(size: u64, mut read: impl FnMut(TileName) -> Result<Vec<Sha256>, E>) -> Result<Self, E> {
        let mut tree = Self {
            size,
            levels: Vec::new(),
        };
        for level in (0..).take_while(|level| at_level(size, *level) > 0) {
            let (index, width) = (
                at_level(size, level) / FULL as u64,
                at_level(size, level) as usize % FULL,
            );
            let level = Some(level);
            tree.levels.push(match width {
                0 => Vec::new(),
                _ => read(TileName { level, index, width })?,
            });
        }
        Ok(tree)
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Calls `full` with each tile that becomes full.
    pub(super) fn push(&mut self, leaf: Sha256, mut full: impl FnMut(TileName, &[Sha256])) {
        self.size += 1;
        let mut hash = leaf;
        for level in 0.. {
            if self.levels.len() == usize::from(level) {
                self.levels.push(Vec::new());
            }
            let hashes = &mut self.levels[usize::from(level)];
            hashes.push(hash);
            if hashes.len() < FULL {
                break;
            }
            let name = TileName {
                level: Some(level),
                index: at_level(self.size, level) / FULL as u64 - 1,
                width: FULL,
            };
            full(name, hashes);
            hash = root_of([(0, &**hashes)]);
            hashes.clear();
        }
    }

    /// Returns the partial tiles that have changed since the tree had the size `since`.
    pub(super) fn partial_tiles(&self, since: u64) -> impl Iterator<Item = (TileName, &[Sha256])> {
        (0_u8..).zip(&self.levels).filter_map(move |(level, hashes)| {
            let name = TileName {
                level: Some(level),
                index: at_level(self.size, level) / FULL as u64,
                width: hashes.len(),
            };
            let is_new = at_level(self.size, level) != at_level(since, level);
            (is_new && !hashes.is_empty()).then_some((name, &**hashes))
        })
    }

    pub(super) fn root(&self) -> Sha256 {
        let levels = self.levels.iter().enumerate();
        root_of(levels.rev().map(|(level, hashes)| (level * 8, &**hashes)))
    }
}

/// Returns the root of the tree that consists of `subtrees`, from left to right. Each item is a height, and the hashes
/// of subtrees of that height.
fn root_of<'a>(subtrees: impl IntoIterator<Item = (usize, &'a [Sha256])>) -> Sha256 {
    let mut stack: Vec<(usize, Sha256)> = Vec::new();
    for (height, hashes) in subtrees {
        for hash in hashes {
            let (mut height, mut hash) = (height, *hash);
            while let Some((_, left)) = stack.pop_if(|(left, _)| *left == height) {
                (height, hash) = (height + 1, node(&left, &hash));
            }
            stack.push((height, hash));
        }
    }
    let hashes = stack.into_iter().rev().map(|(_, hash)| hash);
    hashes
        .reduce(|right, left| node(&left, &right))
        .unwrap_or_else(|| Sha256::of(b""))
}

// === impl TileName ===

impl TileName {
    /// Returns the name of the bundle that contains entry number `entry`, in a tree of `size` entries.
    pub(super) fn bundle(entry: u64, size: u64) -> Self {
        Self::with(None, entry, size)
    }

    /// Returns the name of the tile that contains hash number `hash`, in a level of `hashes` hashes.
    fn with(level: Option<u8>, hash: u64, hashes: u64) -> Self {
        let index = hash / FULL as u64;
        Self {
            level,
            index,
            width: (hashes - index * FULL as u64).min(FULL as u64) as usize,
        }
    }

    pub(super) fn full(self) -> Self {
        Self { width: FULL, ..self }
    }
}

impl fmt::Display for TileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Some(level) => write!(f, "tile/{level}")?,
            None => f.write_str("tile/entries")?,
        }
        let digits = format!("{:03}", self.index);
        let digits = format!("{}{digits}", "0".repeat((3 - digits.len() % 3) % 3));
        let groups = digits.len() / 3;
        for group in 0..groups {
            let mark = if group + 1 < groups { "x" } else { "" };
            write!(f, "/{mark}{}", &digits[group * 3..][..3])?;
        }
        match self.width {
            FULL => Ok(()),
            width => write!(f, ".p/{width}"),
        }
    }
}

/// Returns the hash of the leaf for an entry (RFC 6962 §2.1).
pub(super) fn leaf(entry: &[u8]) -> Sha256 {
    Sha256(
        sha2::Sha256::new()
            .chain_update([0])
            .chain_update(entry)
            .finalize()
            .into(),
    )
}

fn node(left: &Sha256, right: &Sha256) -> Sha256 {
    let hasher = sha2::Sha256::new().chain_update([1]);
    Sha256(hasher.chain_update(left.0).chain_update(right.0).finalize().into())
}

/// Returns the Merkle Tree Hash of the entries `from..to`: the whole tree of the first `to` entries, or one of the
/// subtrees into which RFC 6962 §2.1 splits a tree. `read` returns the hashes of a tile of the tree of `size` entries.
pub(super) fn range_hash<E>(
    from: u64,
    to: u64,
    size: u64,
    read: &mut impl FnMut(TileName) -> Result<Vec<Sha256>, E>,
) -> Result<Sha256, E> {
    let length = to - from;
    if length == 0 {
        return Ok(Sha256::of(b""));
    }
    if !length.is_power_of_two() {
        let left = from + split(length);
        return Ok(node(
            &range_hash(from, left, size, read)?,
            &range_hash(left, to, size, read)?,
        ));
    }
    // The hash of a complete subtree is in a tile, or is the root of up to 128 adjacent hashes in one tile.
    let level = (length.trailing_zeros() / 8) as u8;
    let first = at_level(from, level);
    let hashes = read(TileName::with(Some(level), first, at_level(size, level)))?;
    let start = (first % FULL as u64) as usize;
    Ok(root_of([(0, &hashes[start..][..at_level(length, level) as usize])]))
}

/// Returns the inclusion proof of an entry in the tree of the first `size` entries (RFC 6962 §2.1.1), and the root that
/// follows from `leaf` and this proof. `read` returns the tiles of a tree of `held` entries; `held` is at least `size`.
pub(super) fn inclusion_proof<E>(
    leaf: Sha256,
    entry: u64,
    size: u64,
    held: u64,
    read: &mut impl FnMut(TileName) -> Result<Vec<Sha256>, E>,
) -> Result<(Vec<Sha256>, Sha256), E> {
    let (mut from, mut to) = (0, size);
    let mut path = Vec::new();
    while to - from > 1 {
        let middle = from + split(to - from);
        let is_left = entry < middle;
        let (subtree, sibling) = match is_left {
            true => ((from, middle), (middle, to)),
            false => ((middle, to), (from, middle)),
        };
        path.push((is_left, range_hash(sibling.0, sibling.1, held, read)?));
        (from, to) = subtree;
    }
    path.reverse();
    let root = path.iter().fold(leaf, |hash, (is_left, sibling)| match is_left {
        true => node(&hash, sibling),
        false => node(sibling, &hash),
    });
    Ok((path.into_iter().map(|(_, sibling)| sibling).collect(), root))
}

/// Returns the largest power of two that is less than `length`. `length` must be at least 2.
fn split(length: u64) -> u64 {
    1 << (length - 1).ilog2()
}

/// Returns how many hashes this level of tiles has in a tree of `size` entries.
fn at_level(size: u64, level: u8) -> u64 {
    size.checked_shr(u32::from(level) * 8).unwrap_or(0)
}

/// Number of hashes in a full tile.
pub(super) const FULL: usize = 256;

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, convert::Infallible};

    use super::*;

    fn tiles_of(leaves: &[Sha256]) -> (Tree, HashMap<String, Vec<Sha256>>) {
        let (mut tree, mut tiles) = (Tree::default(), HashMap::new());
        for leaf in leaves {
            tree.push(*leaf, |name, hashes| {
                tiles.insert(name.to_string(), hashes.to_vec());
            });
        }
        for (name, hashes) in tree.partial_tiles(0) {
            assert_eq!(name.width, hashes.len());
            tiles.insert(name.to_string(), hashes.to_vec());
        }
        (tree, tiles)
    }

    /// Computes the Merkle Tree Hash exactly as RFC 6962 §2.1 defines it.
    fn model(leaves: &[Sha256]) -> Sha256 {
        match leaves {
            [] => Sha256::of(b""),
            [one] => *one,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len() as u64) as usize);
                node(&model(left), &model(right))
            }
        }
    }

    /// Computes the root from an inclusion proof, as RFC 9162 §2.1.3.2 describes.
    fn root_by(proof: &[Sha256], entry: u64, size: u64, leaf: Sha256) -> Sha256 {
        let (mut position, mut last, mut hash) = (entry, size - 1, leaf);
        for sibling in proof {
            if position % 2 == 1 || position == last {
                hash = node(sibling, &hash);
                while position % 2 == 0 && position != 0 {
                    (position, last) = (position >> 1, last >> 1);
                }
            } else {
                hash = node(&hash, sibling);
            }
            (position, last) = (position >> 1, last >> 1);
        }
        assert_eq!(last, 0, "the proof has the right length");
        hash
    }

    fn leaves(number: u64) -> Vec<Sha256> {
        (0..number).map(|number| leaf(&number.to_be_bytes())).collect()
    }

    #[test]
    fn roots_match_the_test_vectors_of_certificate_transparency() {
        let entries = [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ];
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let mut tree = Tree::default();
        assert_eq!(tree.root().to_string(), roots[0]);
        for (entry, root) in entries.iter().zip(&roots[1..]) {
            let entry = data_encoding::HEXLOWER.decode(entry.as_bytes()).unwrap();
            tree.push(leaf(&entry), |_, _| panic!("no tile is full"));
            assert_eq!(tree.root().to_string(), *root);
        }
    }

    #[test]
    fn tiles_have_the_paths_and_widths_of_the_specification() {
        for (index, width, path) in [
            (0, 256, "tile/1/000"),
            (5, 9, "tile/1/005.p/9"),
            (1000, 256, "tile/1/x001/000"),
            (1_234_067, 1, "tile/1/x001/x234/067.p/1"),
        ] {
            let level = Some(1);
            assert_eq!(TileName { level, index, width }.to_string(), path);
        }
        let (_, tiles) = tiles_of(&leaves(70_000));
        let count = |of: &dyn Fn(&String) -> bool| tiles.keys().filter(|name| of(name)).count();
        assert_eq!(count(&|name| name.starts_with("tile/0/") && !name.contains(".p")), 273);
        for path in ["tile/0/273.p/112", "tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1"] {
            assert!(tiles.contains_key(path), "{path}");
        }
        assert_eq!(tiles.len(), 277);
        let (_, tiles) = tiles_of(&leaves(256));
        let mut names: Vec<_> = tiles.keys().map(|name| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, ["tile/0/000", "tile/1/000.p/1"]);
    }

    #[test]
    fn roots_and_proofs_can_be_computed_from_the_tiles() {
        for size in [1_u64, 2, 3, 255, 256, 257, 511, 513, 1000, 65_535, 65_536, 65_537] {
            let leaves = leaves(size);
            let (tree, tiles) = tiles_of(&leaves);
            let mut read = |name: TileName| Ok::<_, Infallible>(tiles[&name.to_string()].clone());
            let root = model(&leaves);
            assert_eq!(tree.root(), root, "{size}");
            let Ok(loaded) = Tree::load(size, &mut read);
            assert_eq!((loaded.root(), loaded.levels), (root, tree.levels), "{size}");
            for part in [0, 1, size / 3, size - 1, size] {
                let Ok(hash) = range_hash(0, part, size, &mut read);
                assert_eq!(hash, model(&leaves[..part as usize]), "{part} of {size}");
            }
            // The stored hashes also prove an entry of the tree as it was when it had fewer entries.
            for older in [size, size - size / 3, size / 2 + 1] {
                let root = model(&leaves[..older as usize]);
                for entry in [0, older / 2, older - 1] {
                    let leaf = leaves[entry as usize];
                    let Ok((proof, leads_to)) = inclusion_proof(leaf, entry, older, size, &mut read);
                    let roots = (leads_to, root_by(&proof, entry, older, leaf));
                    assert_eq!(roots, (root, root), "{entry} of the first {older} of {size}");
                }
            }
        }
    }

    #[test]
    fn a_loaded_tree_grows_like_the_tree_that_was_saved() {
        let all = leaves(1000);
        let (mut tree, tiles) = tiles_of(&all[..300]);
        let Ok(mut loaded) = Tree::load(300, |name| Ok::<_, Infallible>(tiles[&name.to_string()].clone()));
        for leaf in &all[300..] {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            tree.push(*leaf, |name, hashes| one.push((name, hashes.to_vec())));
            loaded.push(*leaf, |name, hashes| other.push((name, hashes.to_vec())));
            assert_eq!(one, other);
        }
        assert_eq!(loaded.root(), model(&all));
        let names = |since| {
            loaded
                .partial_tiles(since)
                .map(|(name, _)| name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(999), ["tile/0/003.p/232"]);
        assert_eq!(names(767), ["tile/0/003.p/232", "tile/1/000.p/3"]);
    }
}
