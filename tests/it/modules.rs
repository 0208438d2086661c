//! Checks which top-level modules import which others, by reading their source text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Modules that do no I/O and read no clock. Each may import those before it in this list.
const PURE: [&str; 7] = ["usage", "robots", "origin", "bot", "copy", "pace", "decision"];
const UTILITIES: [&str; 1] = ["text"];
/// Names that a pure module must not use as a part of a path, or as the first word of a crate's name (as in
/// `tokio_util`).
const IMPURE: [&str; 16] = [
    "tokio",
    "pingora",
    "redb",
    "std::fs",
    "std::sync::atomic",
    "File",
    "OpenOptions",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixDatagram",
    "UnixListener",
    "UnixStream",
    "ToSocketAddrs",
    "SystemTime::now",
    "Instant::now",
];

/// A path in the code, with the number of its line. For a path in a `use`, that is the line in which the `use` begins.
type Named = (usize, String);

#[test]
fn pure_modules_import_only_pure_modules_below_them() {
    let mut found = Vec::new();
    for (file, module, named) in sources() {
        let Some(level) = PURE.iter().position(|pure| *pure == module) else {
            continue;
        };
        for (line, path) in named {
            let fault = |what: String| format!("{}:{line}: {path} {what}", file.display());
            found.extend(impure(&path).map(|word| fault(format!("is impure ({word})"))));
            let imported = imported(&path).filter(|other| *other != module);
            if let Some(other) = imported
                && !PURE[..level].contains(&other)
                && !UTILITIES.contains(&other)
            {
                found.push(fault(format!("imports {other}, which {module} may not know")));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn modules_have_no_import_cycles() {
    let sources = sources();
    let modules: BTreeSet<&str> = sources.iter().map(|(_, module, _)| &**module).collect();
    let mut imports: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    for (file, module, named) in &sources {
        for (line, path) in named {
            if let Some(other) = imported(path).filter(|other| other != module && modules.contains(other)) {
                let at = format!("{}:{line}", file.display());
                imports.entry(module).or_default().entry(other).or_insert(at);
            }
        }
    }
    // Remove modules that no other module imports, or that import no remaining module. The modules that cannot be
    // removed form a cycle.
    loop {
        let before = imports.len();
        let left: BTreeSet<&str> = imports.keys().copied().collect();
        for imported in imports.values_mut() {
            imported.retain(|other, _| left.contains(other));
        }
        let wanted: BTreeSet<&str> = imports.values().flat_map(BTreeMap::keys).copied().collect();
        imports.retain(|module, imported| wanted.contains(module) && !imported.is_empty());
        if imports.len() == before {
            break;
        }
    }
    assert!(imports.is_empty(), "these modules import each other: {imports:#?}");
}

fn impure(path: &str) -> Option<&'static str> {
    let segments: Vec<&str> = path.split("::").collect();
    IMPURE.into_iter().find(|word| {
        let words: Vec<&str> = word.split("::").collect();
        let family = segments[0].split('_').next();
        segments.windows(words.len()).any(|part| part == words) || family == Some(word)
    })
}

fn imported(path: &str) -> Option<&str> {
    path.strip_prefix("crate::")?.split("::").next()
}

/// Returns each source file with its module and the paths in its code, without tests.
fn sources() -> Vec<(PathBuf, String, Vec<Named>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(files.len() > 100, "the sources are there");
    let of_file = |file: PathBuf| {
        let inside = file.strip_prefix(&root).ok()?;
        let module = inside
            .components()
            .next()?
            .as_os_str()
            .to_str()?
            .trim_end_matches(".rs");
        let is_test = inside.components().any(|part| part.as_os_str() == "tests") || inside.ends_with("tests.rs");
        // These modules connect all others and are not part of the order.
        if is_test || matches!(module, "lib" | "main" | "fuzzing") {
            return None;
        }
        let text = fs::read_to_string(&file).expect("a file of the sources");
        Some((Path::new("src").join(inside), module.to_owned(), names(&text)))
    };
    files.into_iter().filter_map(of_file).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.extend(Some(path).filter(|path| path.extension().is_some_and(|end| end == "rs"))),
        }
    }
}

/// Returns every path in the code, including the full paths of each `use`.
fn names(text: &str) -> Vec<Named> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut named = Vec::new();
    let mut lines = code.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if line.starts_with("//") {
            continue;
        }
        let item = line
            .strip_prefix("pub(crate) ")
            .or(line.strip_prefix("pub "))
            .unwrap_or(line);
        if let Some(tree) = item.strip_prefix("use ") {
            let mut tree = tree.to_owned();
            while !tree.ends_with(';') {
                let Some((_, more)) = lines.next() else { break };
                tree += more.trim();
            }
            flatten("", tree.trim_end_matches(';'), &mut |path| named.push((at + 1, path)));
        } else {
            let is_path = |byte: char| byte.is_alphanumeric() || matches!(byte, '_' | ':');
            let paths = line.split(|byte| !is_path(byte)).filter(|path| path.contains("::"));
            named.extend(paths.map(|path| (at + 1, path.trim_matches(':').to_owned())));
        }
    }
    named
}

/// Expands `a::{b, c::{d, self}}` to `a::b`, `a::c::d` and `a::c`.
fn flatten(before: &str, tree: &str, found: &mut dyn FnMut(String)) {
    let mut depth = 0;
    let mut start = 0;
    for (at, byte) in tree.char_indices().chain([(tree.len(), ',')]) {
        match byte {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let branch = tree[start..at].trim();
                start = at + 1;
                match branch.split_once('{') {
                    Some((path, inner)) => {
                        let inner = inner.strip_suffix('}').unwrap_or(inner);
                        flatten(&format!("{before}{path}"), inner, found);
                    }
                    None if branch.is_empty() => {}
                    None => {
                        let path = branch.split(" as ").next().unwrap_or_default();
                        found(format!("{before}{path}").trim_end_matches("::self").to_owned());
                    }
                }
            }
            _ => {}
        }
    }
}
