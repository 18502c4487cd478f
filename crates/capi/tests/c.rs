//! The border as C and C++ programs see it: the programs in `tests/c` are compiled against the
//! committed headers and the library, and run; also under valgrind and AddressSanitizer. The
//! adapters to other programs are tested in the same way.

mod adapters;
mod support;

use std::path::Path;
use std::process::Command;
use support::{HERE, compile, has, libraries, passes, run};

#[test]
fn a_c_program_links_either_library_and_passes() {
    for kind in ["a", "so"] {
        let program = compile("cc", "border.c", kind, &["-std=c11"], &format!("border-{kind}"));
        passes(&mut Command::new(program));
    }
}

/// Programs whose memory is checked.
const CHECKED: [&str; 2] = ["border", "link_snapshot"];

#[test]
fn valgrind_finds_no_error_and_no_leak() {
    if !has("valgrind") {
        return;
    }
    for name in CHECKED {
        let source = format!("{name}.c");
        let program = compile("cc", &source, "a", &["-std=c11"], &format!("{name}-valgrind"));
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect"]);
        passes(
            valgrind
                .args(["--errors-for-leak-kinds=definite,indirect", "--error-exitcode=9"])
                .arg(program),
        );
    }
}

#[test]
fn address_sanitizer_finds_no_error_and_no_leak() {
    let flags = ["-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for name in CHECKED {
        let source = format!("{name}.c");
        let program = compile("cc", &source, "a", &flags, &format!("{name}-asan"));
        passes(&mut Command::new(program));
    }
}

#[test]
fn a_link_continues_in_another_process() {
    let program = compile("cc", "link_snapshot.c", "so", &["-std=c11"], "link_snapshot");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("links.snapshot");
    let [saved, loaded] = ["save", "load"].map(|word| {
        let mut command = Command::new(&program);
        run(command.env("LD_LIBRARY_PATH", libraries()).arg(word).arg(&file)).stdout
    });
    assert_eq!(String::from_utf8_lossy(&loaded), String::from_utf8_lossy(&saved));
    assert!(saved.len() > 100_000, "{} bytes", saved.len());
}

#[test]
fn wrong_calls_do_no_harm() {
    let flags = ["-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = compile("cc", "misuse.c", "a", &flags, "misuse");
    passes(Command::new(program).arg(std::env::var("SOJOURN_MISUSE").unwrap_or("40000".into())));
}

#[test]
fn a_cpp_program_uses_the_wrapper() {
    if !has("c++") {
        return;
    }
    let flags = ["-std=c++17", "-fsanitize=address,undefined"];
    passes(&mut Command::new(compile("c++", "wrapper.cpp", "a", &flags, "wrapper")));
}

#[test]
fn an_installed_library_is_found_by_pkg_config_and_cmake() {
    let here = Path::new(HERE);
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefix");
    run(Command::new(here.join("install.sh")).arg(libraries()).arg(&prefix));
    if has("pkg-config") {
        let output = run(Command::new("pkg-config")
            .args(["--cflags", "--libs", "sojourn"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
        let flags = String::from_utf8(output.stdout).unwrap();
        let program = prefix.join("border");
        run(Command::new("cc")
            .arg(here.join("tests/c/border.c"))
            .args(flags.split_whitespace())
            .arg("-o")
            .arg(&program));
        passes(&mut Command::new(program));
    }
    if has("cmake") {
        let build = prefix.join("build");
        run(Command::new("cmake")
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
            .arg("-S")
            .arg(here.join("tests/c"))
            .arg("-B")
            .arg(&build));
        run(Command::new("cmake").arg("--build").arg(&build));
        passes(&mut Command::new(build.join("border")));
        passes(&mut Command::new(build.join("wrapper")));
    }
}

#[test]
fn the_examples_of_the_page_compile_and_run() {
    let page = Path::new(HERE).join("../../docs/how-to/embed.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut starts = Vec::new();
    for (language, compiler, standard) in [("c", "cc", "-std=c11"), ("cpp", "c++", "-std=c++17")] {
        let start = format!("\n```{language}\n");
        for (i, block) in page.split(&start).skip(1).enumerate() {
            let (source, _) = block.split_once("\n```").unwrap();
            let name = format!("example{i}.{language}");
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
            std::fs::write(&path, source).unwrap();
            let flags = [standard, "-fsanitize=address,undefined"];
            let program = compile(compiler, path.to_str().unwrap(), "a", &flags, &(name + ".out"));
            let output = run(&mut Command::new(program));
            let text = String::from_utf8(output.stdout).unwrap();
            starts.push(text.chars().take(22).collect::<String>());
        }
    }
    let expected = [
        "arrived at 26000000 ns",
        "42 arrives at 26000000",
        r#"{"flows":[{"completed""#,
        "saved at 5000000000 ns",
        "",
    ];
    assert_eq!(starts, expected);
}

/// Names of the functions that `text` has before a parenthesis.
fn functions(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<String> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(['*', '/']))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit(|c| !is_name(c)).next())
        .filter(|name| name.starts_with("sj_"))
        .map(str::to_string)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_header_declares_every_function_of_the_source() {
    let header = std::fs::read_to_string(Path::new(HERE).join("include/sojourn.h")).unwrap();
    let mut exported = Vec::new();
    for entry in std::fs::read_dir(Path::new(HERE).join("src")).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let parts = source.split("#[unsafe(no_mangle)]").skip(1);
        exported.extend(
            parts
                .filter_map(|part| part.split_once("fn ")?.1.split_once('('))
                .map(|(name, _)| name.to_string()),
        );
    }
    exported.sort();
    let declared = functions(&header);
    for name in &exported {
        assert!(declared.contains(name), "{name} is not in sojourn.h: run `make header`");
    }
    assert!(exported.len() > 30, "{exported:?}");
}

#[test]
fn the_header_is_the_one_that_cbindgen_writes() {
    if !has("cbindgen") {
        return;
    }
    let output = run(Command::new("cbindgen")
        .args(["--quiet", "--config", "cbindgen.toml", "--crate", "sojourn-capi", "."])
        .current_dir(HERE));
    let header = std::fs::read_to_string(Path::new(HERE).join("include/sojourn.h")).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), header, "run `make header`");
}
