//! Formatting rules: short lines, functions and files, fixed headings in the file of every
//! algorithm, no orphaned file, no to-do marks.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 100;
const LINES_PER_FUNCTION: usize = 70;
const LINES_PER_FILE: usize = 500;

/// Headings of an algorithm's file in order; **Symbols** and **Linux** are optional.
const HEADINGS: [&str; 6] =
    ["**Source**", "**Decides**", "**Measures**", "**Algorithm**", "**Departures**", "**Cost**"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All Rust files under `dir`, without build outputs.
fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// All files of the crates and fuzz targets, with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let files = ["crates", "fuzz"].iter().flat_map(|dir| rust_files(&root().join(dir)));
    let files: Vec<_> = files.map(|path| (path.clone(), read_to_string(path).unwrap())).collect();
    assert!(files.len() > 30, "files are found");
    files
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Fail with a list of all `faults`.
fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn lines_fit_in_a_hundred_columns() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                faults.push(format!("{}:{}: {columns} columns", name(&path), i + 1));
            }
        }
    }
    none(faults);
}

/// True if a formatted line at column 0 starts a table: a static list, or a macro that declares
/// parameters or names. One more row does not make a file harder to read.
fn opens_table(line: &str) -> bool {
    let list = line.starts_with("pub static ") || line.starts_with("static ");
    let declares = ["params", "choice", "table", "controls"].iter().any(|name| {
        let line = line.strip_prefix("crate::").unwrap_or(line);
        line.starts_with(&format!("{name}! {{"))
    });
    (list && line.ends_with('[')) || declares
}

/// Number of lines outside tables.
fn lines_of_code(text: &str) -> usize {
    let (mut count, mut in_table) = (0, false);
    for line in text.lines() {
        in_table |= opens_table(line);
        count += usize::from(!in_table);
        in_table &= !matches!(line, "];" | "}");
    }
    count
}

#[test]
fn tables_do_not_count_as_code() {
    let table = "static ROWS: &[Row] = &[\n    ROW,\n];\n";
    assert_eq!(lines_of_code(&format!("fn a() {{\n}}\n{table}fn b() {{}}\n")), 3);
    assert_eq!(lines_of_code("crate::params! {\n    a\n}\nparams! {\n    a\n}\n"), 0);
    assert_eq!(lines_of_code("static ONE: u8 = 1;\n/// Text.\nmacro_rules! params {\n}\n"), 4);
}

#[test]
fn files_are_short() {
    let long = |(path, text): &(PathBuf, String)| {
        let lines = lines_of_code(text);
        (lines > LINES_PER_FILE).then(|| format!("{}: {lines} lines", name(path)))
    };
    none(sources().iter().filter_map(long).collect());
}

/// True if a formatted line starts a function.
fn opens_function(line: &str) -> bool {
    let mut words = line.split_whitespace().take_while(|word| !word.contains('(')).chain(
        // `fn name(...)`: the word with the bracket is the name.
        line.split_whitespace().find(|word| word.contains('(')),
    );
    let before = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern") || word.starts_with("pub(")
    };
    words.by_ref().find(|word| !before(word)) == Some("fn")
}

#[test]
fn functions_are_short() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate().filter(|(_, line)| opens_function(line)) {
            // In formatted code the closing brace of a function is indented like its first line.
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            // The declaration of a method in a trait ends with a semicolon.
            let head = lines[start..].iter().find(|l| l.ends_with(['{', '}', ';']));
            let has_body = head.is_some_and(|l| l.ends_with('{'));
            let length = lines[start..].iter().position(|l| *l == end).map_or(0, |k| k + 1);
            if has_body && length > LINES_PER_FUNCTION {
                let what = line.trim();
                faults.push(format!("{}:{}: {length} lines: {what}", name(&path), start + 1));
            }
        }
    }
    none(faults);
}

/// Files in the folder of the schedulers that are parts of several schedulers.
const PARTS: [&str; 15] = [
    "child",
    "filter",
    "bucket",
    "clocked",
    "dual",
    "hold",
    "leaf_set",
    "linux",
    "longest",
    "priority_map",
    "ring",
    "scheduler",
    "tags",
    "tree",
    "tuned",
];

#[test]
fn every_algorithm_file_has_its_headings() {
    let mut faults = Vec::new();
    for dir in ["crates/aqm/src/aqm", "crates/aqm/src/sched"] {
        for path in rust_files(&root().join(dir)) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if path.ends_with("mod.rs") || path.ends_with("tests.rs") || PARTS.contains(&stem) {
                continue;
            }
            if path.parent().is_some_and(|folder| folder.with_extension("rs").exists()) {
                continue; // a part of the algorithm whose file is next to the folder
            }
            let text = read_to_string(&path).unwrap();
            let head: Vec<&str> = text.lines().take_while(|l| l.starts_with("//!")).collect();
            let head = head.join("\n");
            let places: Vec<_> = HEADINGS.iter().map(|heading| head.find(heading)).collect();
            for (heading, place) in HEADINGS.iter().zip(&places) {
                if place.is_none() {
                    faults.push(format!("{}: no {heading}", name(&path)));
                }
            }
            if !places.is_sorted() {
                faults.push(format!("{}: headings out of order", name(&path)));
            }
            if !head.contains(": ") || !text.contains("#[cfg(test)]") {
                faults.push(format!("{}: no title or no tests", name(&path)));
            }
        }
    }
    none(faults);
}

/// Checks that the state size under Cost equals the size in `sojourn list`. A scheduler with an AQM
/// per queue, such as `wfq_codel`, has no file.
#[test]
#[cfg(target_pointer_width = "64")]
fn documented_state_sizes_are_correct() {
    let mut faults = Vec::new();
    let mut checked = 0;
    for entry in sojourn_aqm::registry::REGISTRY {
        let stem = match entry.name {
            "droptail" => "drop_tail",
            "fq" => "fq_paced",
            name => name,
        };
        let dirs = ["aqm", "sched"].map(|dir| root().join("crates/aqm/src").join(dir));
        let paths = dirs.iter().map(|dir| dir.join(stem).with_extension("rs"));
        let Some(path) = paths.into_iter().find(|path| path.exists()) else { continue };
        checked += 1;
        let text = read_to_string(path).unwrap();
        let cost = text.lines().skip_while(|line| !line.contains("**Cost** "));
        let cost: Vec<_> = cost.take_while(|line| line.starts_with("//!")).collect();
        let size = format!("**Cost** {} bytes of state", entry.state_bytes());
        if !cost.join("\n").contains(&size) {
            faults.push(format!("{}: {size} is not what it says", entry.name));
        }
    }
    assert!(checked > 20, "the files are found");
    none(faults);
}

/// Files included by `path` through `mod name;`, with or without `#[path]`.
fn included(path: &Path, text: &str) -> Vec<PathBuf> {
    let dir = path.parent().unwrap();
    let stem = path.file_stem().unwrap().to_string_lossy();
    let is_root = matches!(&*stem, "mod" | "lib" | "main") || is_target(path);
    let home = if is_root { dir.to_path_buf() } else { dir.join(&*stem) };
    let mut files = Vec::new();
    let mut at = None;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|l| l.strip_suffix("\"]")) {
            at = Some(dir.join(path));
            continue;
        }
        let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        let module = line.strip_prefix("mod ").and_then(|l| l.strip_suffix(';'));
        if let Some(module) = module {
            let usual = [home.join(format!("{module}.rs")), home.join(module).join("mod.rs")];
            let usual = usual.into_iter().find(|file| file.exists());
            files.extend(at.take().or(usual).and_then(|file| file.canonicalize().ok()));
        }
    }
    files
}

/// True if cargo finds the file by itself: library, binary, test, benchmark or fuzz target.
fn is_target(path: &Path) -> bool {
    let parent = path.parent().unwrap();
    let dir = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    let (near, stem) = (dir(parent), path.file_stem().unwrap().to_string_lossy());
    let own =
        |name: &str| matches!(name, "tests" | "benches" | "examples" | "fuzz_targets" | "bin");
    let in_crate = parent.parent().unwrap().join("Cargo.toml").exists();
    (near == "src" && matches!(&*stem, "lib" | "main"))
        || (own(&near) && in_crate)
        || (stem == "main" && own(&dir(parent.parent().unwrap())))
        || (stem == "build" && parent.join("Cargo.toml").exists())
}

#[test]
fn every_file_is_included_somewhere() {
    let sources = sources();
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut next: Vec<PathBuf> =
        sources.iter().map(|s| s.0.clone()).filter(|path| is_target(path)).collect();
    while let Some(path) = next.pop() {
        if reached.insert(path.clone()) {
            next.extend(included(&path, &read_to_string(&path).unwrap()));
        }
    }
    let dead = sources.iter().filter(|(path, _)| !reached.contains(path));
    none(dead.map(|(path, _)| format!("{}: nothing includes it", name(path))).collect());
}

#[test]
fn there_are_no_todo_marks() {
    // Split, so that this file does not match itself.
    let words = [["to", "do!("], ["unimple", "mented!("], ["TO", "DO"], ["FIX", "ME"], ["X", "XX"]];
    let mut faults = Vec::new();
    for (path, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(&word.concat())) {
                faults.push(format!("{}:{}: {}", name(&path), i + 1, line.trim()));
            }
        }
    }
    none(faults);
}
