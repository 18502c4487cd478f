//! The adapters to C, C++ and Go in `adapters`, built with the library that is tested, and run: in
//! ns-3 as it is installed, and with stubs of picoquic and quicly.

use crate::support::{HERE, SYSTEM, libraries, passes, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn adapter(name: &str) -> PathBuf {
    Path::new(HERE).join("../../adapters").join(name)
}

/// Compiles the sources of an adapter, with the static library; returns the program.
fn build(compiler: &str, adapter: &Path, sources: &[&str], flags: &[&str], name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    run(Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-g"])
        .args(["-I", ".", "-I", "stub", "-I"])
        .arg(Path::new(HERE).join("include"))
        .args(sources)
        .arg(libraries().join("libsojourn.a"))
        .args(flags)
        .args(SYSTEM)
        .arg("-o")
        .arg(&program)
        .current_dir(adapter));
    program
}

const SANITIZED: [&str; 3] =
    ["-D_GNU_SOURCE", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

#[test]
fn picoquic_has_any_discipline_in_its_table_of_an_aqm() {
    let sources = ["sojourn_aqm.c", "test.c", "stub/sim_link.c"];
    passes(&mut Command::new(build("cc", &adapter("picoquic"), &sources, &SANITIZED, "picoquic")));
}

#[test]
fn quicly_has_a_link_as_a_node_of_its_simulator() {
    let program = build("cc", &adapter("quicly"), &["test.c"], &SANITIZED, "quicly");
    let output = run(&mut Command::new(program));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "passed\n");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"bottleneck\": \"drop\""));
}

/// The value of a number in the line that the program has printed about a run.
fn number(line: &str, key: &str) -> f64 {
    let (_, rest) = line.split_once(&format!("\"{key}\": ")).expect(key);
    rest.split([',', '}']).next().and_then(|value| value.parse().ok()).expect(key)
}

#[test]
fn ns3_runs_any_discipline_by_an_attribute() {
    if !Path::new("/usr/include/ns3").exists() {
        assert!(std::env::var_os("CI").is_none(), "ns-3 is missing: install libns3-dev");
        return;
    }
    let flags =
        ["applications", "point-to-point", "traffic-control", "internet", "network", "core"]
            .map(|module| format!("-lns3-{module}"));
    let flags: Vec<&str> = ["-std=c++17"].into_iter().chain(flags.iter().map(|f| &**f)).collect();
    let program = build("c++", &adapter("ns3"), &["dumbbell.cc"], &flags, "ns3");
    let simulate = |queues: &str, options: &[&str]| {
        let queue = format!("--queue={queues}");
        let output = run(Command::new(&program)
            .args([&queue, "--flows=2", "--seconds=8", "--warmup=2"])
            .args(options));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(str::to_string).collect::<Vec<_>>()
    };
    // Equal algorithms decide equally, to the last digit.
    for (theirs, ours) in [
        ("ns3::CoDelQueueDisc", "codel(variant=linux,limit=1000p)"),
        ("ns3::CobaltQueueDisc", "cobalt(limit=1000p)"),
    ] {
        let lines = simulate(&format!("{theirs};{ours}"), &[]);
        assert_eq!(lines[0].replace(theirs, ours), lines[1]);
        assert!(number(&lines[0], "dropped") > 3.0, "{lines:?}");
    }
    // A shaper holds packets back; marks reach the sender.
    let shaped = &simulate("tbf(rate=5mbit,burst=20kB,limit=100kB)", &[])[0];
    assert!((4.5e6..5e6).contains(&number(shaped, "goodput_bps")), "{shaped}");
    let marked = &simulate("fq_codel(variant=linux)", &["--ecn=true"])[0];
    assert!(number(marked, "marked") > 3.0 && number(marked, "dropped") == 0.0, "{marked}");
    let refused = Command::new(&program).arg("--queue=codle").output().unwrap();
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("did you mean \"codel\"?"), "{message}");
}

#[test]
fn go_has_disciplines_and_links() {
    let go = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok_and(|o| o.status.success()));
    let Some(go) = go else {
        assert!(std::env::var_os("CI").is_none(), "go is missing");
        return;
    };
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    run(Command::new(Path::new(HERE).join("install.sh")).arg(libraries()).arg(&prefix));
    let mut test = Command::new(go);
    test.args(["test", "-count=1", "./..."])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .current_dir(adapter("go"));
    let output = run(&mut test);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("ok"), "{output:?}");
}
