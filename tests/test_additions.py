"""Additions to each registry take the files that CONTRIBUTING names.

The test adds an AQM algorithm, a congestion control, a source, a metric and a key of a scenario to
a copy of the repository, compiles it, runs the generator once, and
runs the checks that read the registries. The copy is in `target`, so that a second run compiles
only what changed. It has a target directory of its own, since cargo would confuse its
libraries with the repository's.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COPY = BUILT / "additions"
TARGET = COPY / "target"
TEXTS = Path(__file__).parent / "additions"

BUILD = {
    "CARGO_TARGET_DIR": str(TARGET),
    "CARGO_PROFILE_DEVELOP_OPT_LEVEL": "0",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
}
"""Variables for cargo: nothing here runs for long, so compiling quickly is what counts."""

AQM = "crates/aqm/src"
SIM = "crates/sim/src"
FAMILIES = f"{AQM}/registry/families.rs"
COVERAGE = "crates/aqm/tests/coverage.rs"

SOURCE = """
params! {
    /// Bulk transfer under another name.
    pub struct Steady {
        /// Start time.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Time from which no new data is sent; auto means never.
        stop: Option<Span> = None, [], "", [];
    }
}
"""

METRIC = '''

@metric("packets", "tests/test_additions.py")
def sent_packets(result: Result, link: str) -> float:
    """Packets sent by `link`."""
    return float(result.links[link].departed_packets)
'''

KEY = """
    /// Longest random delay of a packet.
    heat: Span, default "0s", ["0s" => "1s"], "\\"1ms\\"";
"""

ENTRIES = {
    "aqm": [
        (f"{AQM}/aqm/mod.rs", "pub mod blue;\n",
         '#[cfg(feature = "blue")]\npub mod toy;\n'),
        (f"{AQM}/registry.rs", "    aqm::blue::ENTRY,\n",
         '    #[cfg(feature = "blue")]\n    aqm::toy::ENTRY,\n'),
        (FAMILIES, '    ("blue", &["blue"]),\n', '    ("toy", &["blue"]),\n'),
        (COVERAGE, '    ("ewfq", OPEN),\n', '    ("toy", OPEN),\n'),
    ],
    "control": [
        (f"{SIM}/endpoint/cc/mod.rs", "mod external;\n", "mod gentle;\n"),
        (f"{SIM}/endpoint/cc/mod.rs", "    external::{External, ExternalParams}: External, [];\n",
         "    gentle::{Gentle, GentleParams}: Gentle, [TCP];\n"),
    ],
    "source": [
        (f"{SIM}/traffic/application.rs",
         "            Source::Bulk(_) => App::Bulk { open: false },\n",
         "            Source::Steady(_) => App::Bulk { open: false },\n"),
        (f"{SIM}/traffic/source.rs", "use sojourn_aqm::units::{Bytes, Rate, Span};\n", SOURCE),
        (f"{SIM}/traffic/source.rs", "    /// [`Bulk`].\n    Bulk(Bulk),\n",
         "    /// [`Steady`].\n    Steady(Steady),\n"),
        (f"{SIM}/traffic/source.rs", "            Source::Bulk($p) => $value,\n",
         "            Source::Steady($p) => $value,\n"),
        (f"{SIM}/traffic/source.rs", '            Source::Bulk(_) => "bulk",\n',
         '            Source::Steady(_) => "steady",\n'),
        (f"{SIM}/traffic/source.rs", "pub static SOURCES: &[SourceEntry] = &[\n",
         '    SourceEntry {\n        name: "steady",\n        about: "a bulk transfer",\n'
         '        source: "tests/test_additions.py",\n'
         "        read: |n| n.params().map(Source::Steady),\n    },\n"),
    ],
    "metric": [("python/sojourn/metrics/throughput.py", "", METRIC)],
    "key": [(f"{SIM}/config/links.rs", '        "\\"1514B\\"";\n', KEY)],
}  # fmt: skip
"""Insertions by hand: file, text before it (empty for the end), and the text."""

NEW = {
    f"{AQM}/aqm/toy.rs": "toy.rs",
    f"{SIM}/endpoint/cc/gentle.rs": "gentle.rs",
}
"""The new files, with their texts."""

BY_HAND = {
    "aqm": [f"{AQM}/aqm/mod.rs", f"{AQM}/aqm/toy.rs", f"{AQM}/registry.rs", FAMILIES, COVERAGE],
    "control": [f"{SIM}/endpoint/cc/gentle.rs", f"{SIM}/endpoint/cc/mod.rs"],
    "source": [f"{SIM}/traffic/application.rs", f"{SIM}/traffic/source.rs"],
    "metric": ["python/sojourn/metrics/throughput.py"],
    "key": [f"{SIM}/config/links.rs"],
}
"""Files to change by hand, by what is added; CONTRIBUTING names them."""

GENERATED = {
    "README.md",
    "docs/reference/algorithms/README.md",
    "docs/reference/algorithms/disciplines/toy.md",
    "docs/reference/algorithms/disciplines/toy.svg",
    "docs/reference/algorithms/sources/steady.md",
    "docs/reference/algorithms/tcp/gentle.md",
    "docs/reference/metrics.md",
    "docs/reference/scenario.md",
    "docs/reference/which-tcp.md",
    "examples/every-key.toml",
    "playground/src/model/figures.json",
    "playground/src/model/specs.json",
    "python/sojourn/qdisc.py",
    "python/sojourn/scenario/keys.py",
    "python/sojourn/source.py",
    "python/sojourn/tcp.py",
    "tests/golden/api/sojourn-aqm.txt",
    "tests/golden/api/sojourn-sim.txt",
}
"""Files written by `make gen`."""

RUN = """
import json, sojourn as sj
from sojourn import metrics
from sojourn.scenario.draft import canonical
flow = {"name": "f", "path": ["up"], "rtt": "20ms", "source": "steady", "tcp": "gentle"}
link = sj.Link(rate="10mbit", qdisc=sj.qdisc.Toy(every=50), heat="5ms")
tree = {"duration": "5s", "links": {"up": {"rate": "10mbit", "heat": "5ms"}}, "flows": [flow]}
heat = canonical(tree)["links"]["up"]["heat"]
result = sj.simulate(sj.Scenario(duration="5s", links={"up": link}, flows=[flow]))
try:
    sj.Link(rate="10mbit", heat="2s")
except sj.InputError as error:
    refused = str(error)
up = result.links["up"]
print(json.dumps({"sent": metrics.sent_packets(result, "up"), "arrived": up.arrived_packets,
                  "dropped": up.dropped_early_packets, "departed": up.departed_packets,
                  "goodput": metrics.goodput_bps(result), "heat": heat, "refused": refused}))
"""


def tracked() -> list[str]:
    """Return the files of the repository that a build or a check reads."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in names.stdout.splitlines() if (ROOT / name).is_file()]


def digests() -> dict[str, str]:
    """Return the digest of every file of the copy, except caches and the compiled module."""
    return {
        str(path.relative_to(COPY)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in COPY.rglob("*")
        if path.is_file()
        and not {"__pycache__", "target"} & set(path.relative_to(COPY).parts)
        and path.suffix not in (".so", ".pyc")
    }


def write(name: str, text: str | bytes) -> None:
    """Write a file of the copy, unless it has this text: cargo goes by the time of the change."""
    path = COPY / name
    data = text.encode() if isinstance(text, str) else text
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def added(name: str) -> str:
    """Return the text of a file of the repository with what is added to it by hand."""
    text = (ROOT / name).read_text()
    for file, before, inserted in (one for each in ENTRIES.values() for one in each):
        if file == name:
            assert text.count(before) == 1 or not before, f"{name}: {before!r}"
            text = text.replace(before, before + inserted) if before else text + inserted
    return text


def run(*command: Any, **variables: str) -> str:
    """Run a command in the copy and return its output."""
    environment = os.environ | {"PYTHONPATH": str(COPY / "python")} | variables
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=COPY, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"[-8000:]
    return done.stdout


@pytest.fixture(scope="module")
def changed() -> set[str]:
    """Make the copy, add everything, and run the generator once; return the changed files."""
    by_hand = {file for each in ENTRIES.values() for file, _, _ in each}
    names = set(tracked())
    if COPY.exists():  # of an earlier run
        for name in digests().keys() - names - NEW.keys():
            (COPY / name).unlink()
    for name in names:
        write(name, added(name) if name in by_hand else (ROOT / name).read_bytes())
    for name, text in NEW.items():
        write(name, (TEXTS / text).read_text())
    run("cargo", "fmt", "--all")
    before = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in names}
    compile_copy()
    run(sys.executable, "tools/gen.py")
    after = digests()
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def compile_copy() -> None:
    """Compile the module of the copy."""
    run("cargo", "build", "--quiet", "--profile", "develop", "-p", "sojourn-py", **BUILD)
    (module,) = (ROOT / "python/sojourn").glob("_sojourn*.so")
    libraries = (TARGET / "develop").glob("lib_sojourn.*")
    built = next(file for file in libraries if file.suffix in (".so", ".dylib"))
    shutil.copyfile(built, COPY / "python/sojourn" / module.name)


def test_what_is_written_by_hand_is_what_contributing_says(changed: set[str]) -> None:
    """Everything else is generated."""
    by_hand = {file for files in BY_HAND.values() for file in files}
    assert changed == by_hand | GENERATED
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    for files in BY_HAND.values():
        for file in files:
            name = Path(file).name
            known = (name, "NAME.rs", "python/sojourn/metrics/")
            assert any(one in guide for one in known), f"CONTRIBUTING names {file}"


def test_one_run_of_the_generator_suffices(changed: set[str]) -> None:
    """The second run finds nothing to do, so the pages have the right numbers."""
    run(sys.executable, "tools/gen.py", "--check")
    header = (COPY / f"{AQM}/aqm/toy.rs").read_text()
    assert "**Cost** 0 bytes" not in header
    assert "docs/reference/algorithms/disciplines/toy.md" in changed


def test_all_of_them_run(changed: set[str]) -> None:
    """One of 50 packets that find a queue is dropped; the flow gets a part of the link."""
    summary = json.loads(run(sys.executable, "-W", "ignore", "-c", RUN))
    assert 10 < summary["dropped"] <= summary["arrived"] // 50
    assert summary["sent"] == summary["departed"] > 1000
    assert summary["goodput"] > 1e6
    assert summary["heat"] == "5ms"
    assert summary["refused"] == "Link.heat: 2s is out of range, allowed: 0s to 1s"
    assert changed


def test_the_checks_of_the_registries_pass(changed: set[str]) -> None:
    """Names, pages, counts and layout agree. With SOJOURN_ADDITIONS=all also invariants."""
    assert changed
    tests = (
        "test_readme.py::test_every_discipline_is_counted",
        "test_layers.py",
        "test_missing.py",
    )
    run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "pyproject.toml",
        *(f"tests/{test}" for test in tests))  # fmt: skip
    of_toy = BUILD | {"SOJOURN_DISCIPLINE": "toy"}
    chosen: list[tuple[str, ...]] = [("--test", "tidy", "--test", "coverage")]
    if os.environ.get("SOJOURN_ADDITIONS") == "all":
        chosen += [("--test", "check"), ("--lib", "toy")]
    for tests_of in chosen:
        run("cargo", "test", "--quiet", "-p", "sojourn-aqm", *tests_of, **of_toy)
