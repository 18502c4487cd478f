//! Compilers, the library that is tested, and programs that say "passed".

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Folder of the crate.
pub const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// Libraries that the static library needs.
pub const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// Folder of the library, next to the tests.
pub fn libraries() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder
}

/// Runs a command, which succeeds.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{command:?}\n{}{}", text[0], text[1]);
    output
}

/// True if the tool is there. CI has all of them.
pub fn has(tool: &str) -> bool {
    let exists = Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    assert!(exists || std::env::var_os("CI").is_none(), "{tool} is missing");
    exists
}

/// Compiles `source` with `flags`, linked with the library `kind` (`a` or `so`); returns the
/// program.
pub fn compile(compiler: &str, source: &str, kind: &str, flags: &[&str], name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let library = libraries().join(format!("libsojourn.{kind}"));
    run(Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O1", "-g"])
        .args(flags)
        .arg("-I")
        .arg(Path::new(HERE).join("include"))
        .arg(Path::new(HERE).join("tests/c").join(source))
        .arg(library)
        .args(SYSTEM)
        .arg("-o")
        .arg(&program));
    program
}

/// Runs a program, which prints "passed".
pub fn passes(command: &mut Command) {
    let output = run(command.env("LD_LIBRARY_PATH", libraries()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "passed\n", "{command:?}");
}
