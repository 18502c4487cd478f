"""Mutation testing: find small changes of the code that no test notices.

cargo-mutants lists the mutants of a file. To build and test each by itself takes 40 s, most of it
the compiler's. So the mutants of several files are built at once: the body of each function becomes
`match mutant::id(..) { 1 => { first mutant } ... _ => { original } }`, and the environment variable
SOJOURN_MUTANT selects one of them. A mutant then costs the time of its tests. Each test is run once
without a mutant, to record which functions it calls and how long it takes. A mutant is run on the
tests that call its function: those nearest to the file first, and quick ones before slow ones. The
first failure ends the run.

A survivor must be listed in `allowed.toml` with the reason why no test can or need notice it; any
other survivor makes this program exit with 1. See reports/mutation.md.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

from sojourn_lab import ROOT
from sojourn_lab.mutation.ladder import Rung, ladder
from sojourn_lab.mutation.results import allowed_in, keep, remembered, summed_up, write_page
from sojourn_lab.mutation.source import Mutant, by_function, changed, mutants_of, switched

ROOM = ROOT / "target" / "mutants"
TREE, BUILD = ROOM / "tree", ROOM / "build"
SCOPE = (
    "crates/aqm/src/**/*.rs",
    "crates/sim/src/endpoint/tcp/**/*.rs",
    "crates/sim/src/endpoint/cc/**/*.rs",
)
LEFT_OUT = (
    "testing.rs",
    "tests.rs",
    "tests/*.rs",
    "aqm/src/error.rs",
    "aqm/src/missing.rs",
    "aqm/src/params.rs",
    "aqm/src/params/*.rs",
)
"""Files of tests alone, and those that read and describe parameters and write messages."""
MANY = 400
"""Mutants that are built together. Twice as many save little time, and take twice the memory."""
MEMORY = 8 << 20
"""Address space of a test, KiB: a mutant that never stops to allocate must not take the machine."""
QUICK = 0.02
"""Processor time of a quick test, s."""
SWITCH = """
/// Selects the mutant to run.
#[doc(hidden)]
pub mod mutant {
    extern crate std;
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Number of the mutant, 0 for the original. Records that `function` was called, if asked to.
    pub fn id(function: usize) -> u32 {
        static ID: OnceLock<u32> = OnceLock::new();
        static CALLED: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];
        static RECORD: OnceLock<Option<std::fs::File>> = OnceLock::new();
        let read = || std::env::var("SOJOURN_MUTANT").map_or(0, |n| n.parse().unwrap());
        let id = *ID.get_or_init(read);
        if id == 0 && !CALLED[function].load(Relaxed) {
            CALLED[function].store(true, Relaxed);
            let open = || std::env::var("SOJOURN_CALLED").ok().map(|path| {
                std::fs::File::options().append(true).create(true).open(path).unwrap()
            });
            if let Some(mut file) = RECORD.get_or_init(open).as_ref() {
                writeln!(file, "{function}").unwrap();
            }
        }
        id
    }
}
"""


@dataclass
class Outcome:
    """Fate of a mutant (caught, timeout, missed or unviable), and the tests that decided it."""

    mutant: Mutant
    result: str
    by: str = ""


def sync() -> None:
    """Bring the copy of the repository up to date. The files get the time of the copying."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in files:
        source, copy = (ROOT / name).read_bytes(), TREE / name
        if name in ("crates/aqm/src/lib.rs", "crates/sim/src/lib.rs"):
            # With `no_std`, a replacement such as `vec![]` compiles in unit tests alone.
            source = source.replace(b"#![no_std]\n", b"") + SWITCH.encode()
        if not copy.is_file() or copy.read_bytes() != source:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source)
    for copy in TREE.rglob("*.rs"):
        if str(copy.relative_to(TREE)) not in files:
            copy.unlink()


@dataclass(frozen=True)
class Reach:
    """A test, as it is without a mutant."""

    name: str
    seconds: float
    """Processor time."""
    functions: frozenset[int]
    """Numbers of the functions with mutants that it calls."""


class Tests:
    """The test binaries of the copy as it stands, built and tried out when first needed."""

    def __init__(self, functions: dict[int, int] | None = None) -> None:
        self.binaries: dict[tuple[str, str], Path] = {}
        self.functions = functions
        """Number of the function of each mutant; None if the only mutant is not switched."""
        self.reach: dict[Rung, list[Reach]] = {}
        self.lock = RLock()

    def build(self, package: str, target: str) -> list[dict[str, Any]]:
        """Build a test binary; return the compiler's errors."""
        which = ["--lib"] if target == "lib" else ["--test", target]
        command = ["cargo", "test", "--quiet", "--profile", "mutants", "--no-run", "--package"]
        env = os.environ | {"CARGO_TARGET_DIR": str(BUILD), "RUSTFLAGS": "--cap-lints=allow"}
        # Most mutants see unit tests alone: to optimise these takes longer than to run them.
        env["CARGO_PROFILE_MUTANTS_OPT_LEVEL"] = "0" if target == "lib" else "1"
        done = subprocess.run(
            [*command, package, *which, "--message-format=json"],
            cwd=TREE,
            env=env,
            capture_output=True,
            text=True,
        )
        errors = []
        for line in done.stdout.splitlines():
            event = json.loads(line)
            if event["reason"] == "compiler-message" and event["message"]["level"] == "error":
                errors.append(event["message"])
            if event["reason"] == "compiler-artifact" and event["executable"]:
                self.binaries[package, target] = Path(event["executable"])
        if done.returncode and not errors:
            sys.exit(f"cargo cannot build the tests:\n{done.stderr}")
        return errors

    def run(self, rung: Rung, mutant: Mutant) -> str:
        """Run the tests of `rung` on a mutant: caught, timeout or missed."""
        with self.lock:
            if rung[:2] not in self.binaries and (errors := self.build(*rung[:2])):
                sys.exit("\n".join(error["rendered"] for error in errors))
            if self.functions is None:
                return self.execute(rung, rung.arguments(), 60, {})
            if rung not in self.reach:
                self.reach[rung] = self.tried_out(rung)
        function = self.functions[mutant.id]
        tests = [test for test in self.reach[rung] if function in test.functions]
        chosen = {"SOJOURN_MUTANT": str(mutant.id)}
        for quick in (True, False):
            some = [test for test in tests if (test.seconds < QUICK) == quick]
            budget = 1 + round(3 * sum(test.seconds for test in some))
            names = [test.name for test in some]
            if (
                some
                and (end := self.execute(rung, ["--exact", *names], budget, chosen)) != "missed"
            ):
                return end
        return "missed"

    def execute(
        self, rung: Rung, arguments: Sequence[str], seconds: int, chosen: dict[str, str]
    ) -> str:
        """Run the test binary of `rung` for up to `seconds` of processor time."""
        limits = f'ulimit -t {seconds}; ulimit -v {MEMORY}; exec "$@"'
        binary = self.binaries[rung.package, rung.target]
        process = subprocess.Popen(
            ["sh", "-c", limits, "sh", binary, *arguments],
            cwd=TREE / "crates" / rung.package.removeprefix("sojourn-"),
            env=os.environ | {"RUST_TEST_THREADS": "1"} | dict(rung.env) | chosen,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout
        with process:
            for line in process.stdout:
                if line.startswith("test ") and line.rstrip().endswith("FAILED"):
                    process.kill()
                    return "caught"
        if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "timeout"
        return "caught" if process.returncode else "missed"

    def tried_out(self, rung: Rung) -> list[Reach]:
        """Run each test of `rung` on the original; all must pass."""
        binary = self.binaries[rung.package, rung.target]
        command = [str(binary), *rung.arguments(), "--list", "--format=terse"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        record, reached = ROOM / f"called-{os.getpid()}", []
        for name in (line[:-6] for line in listed.splitlines() if line.endswith(": test")):
            record.unlink(missing_ok=True)
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            end = self.execute(rung, ["--exact", name], 600, {"SOJOURN_CALLED": str(record)})
            if end != "missed":
                sys.exit(f"fails without a mutant: {name}, of {rung.target} of {rung.package}")
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            called = record.read_text().split() if record.exists() else []
            reached.append(Reach(name, seconds, frozenset(map(int, called))))
        return reached


def build_together(batch: list[Mutant]) -> tuple[Tests, list[Mutant]]:
    """Build the tests with all mutants of `batch`; return those that do not compile."""
    left = list(batch)
    refused: list[Mutant] = []
    while True:
        owners: dict[str, list[int]] = {}
        functions: dict[int, int] = {}
        for file in {m.file for m in batch}:
            text = (ROOT / file).read_text()
            of_file = [m for m in left if m.file == file]
            new, owners[file] = switched(text, of_file)
            (TREE / file).write_text(new)
            groups = by_function(of_file).values()
            functions |= {m.id: group[0].id for group in groups for m in group}
        tests = Tests(functions)
        errors = tests.build(batch[0].package, "lib")
        if not errors:
            return tests, refused
        spans = (span for error in errors for span in error["spans"] if span["is_primary"])
        known = (span for span in spans if span["file_name"] in owners)
        bad = {owners[span["file_name"]][span["line_start"] - 1] for span in known} - {0}
        if not bad:
            sys.exit("\n".join(error["rendered"] for error in errors))
        refused += [m for m in left if m.id in bad]
        left = [m for m in left if m.id not in bad]


def climb_together(
    tests: Tests, rungs: dict[int, Sequence[Rung]], left: list[Mutant], jobs: int
) -> Iterable[Outcome]:
    """As `climb`, for many mutants: all on their first rung, those left on the next one.

    So a test binary is built only once the earlier ones have caught what they can.
    """
    depth = 0
    with ThreadPoolExecutor(jobs) as pool:
        while left:
            yield from (Outcome(m, "missed") for m in left if depth >= len(rungs[m.id]))
            here = [m for m in left if depth < len(rungs[m.id])]
            tried = [rungs[m.id][depth] for m in here]
            left = []
            for mutant, rung, result in zip(
                here, tried, pool.map(tests.run, tried, here), strict=True
            ):
                if result == "missed":
                    left.append(mutant)
                else:
                    yield Outcome(mutant, result, rung.target)
            depth += 1


def climb(tests: Tests, rungs: Sequence[Rung], mutant: Mutant) -> Outcome:
    """Run the tests on a mutant, rung after rung, until one of them detects it."""
    for rung in rungs:
        result = tests.run(rung, mutant)
        if result != "missed":
            return Outcome(mutant, result, rung.target)
    return Outcome(mutant, "missed")


def test(batch: list[Mutant], jobs: int, near_alone: bool) -> Iterable[Outcome]:
    """Run all mutants of `batch`, which are of one package."""
    sync()
    ladders = {file: ladder(ROOT, file) for file in {m.file for m in batch}}
    allowed = {file: allowed_in(file) for file in ladders}

    def rungs(mutant: Mutant) -> Sequence[Rung]:
        near, far = ladders[mutant.file]
        return near if near_alone or mutant.key in allowed[mutant.file] else [*near, *far]

    together = [m for m in batch if m.body]
    if together:
        tests, refused = build_together(together)
        yield from (Outcome(mutant, "unviable") for mutant in refused)
        left = [m for m in together if m not in refused]
        yield from climb_together(tests, {m.id: rungs(m) for m in left}, left, jobs)
    for mutant in batch:
        if not mutant.body:
            sync()
            text = (ROOT / mutant.file).read_text()
            (TREE / mutant.file).write_text(changed(text, mutant, (0, len(text))))
            yield climb_alone(rungs(mutant), mutant)


def climb_alone(rungs: Sequence[Rung], mutant: Mutant) -> Outcome:
    """As `climb`, for a mutant that is the only one in the copy of the repository."""
    tests = Tests()
    if tests.build(mutant.package, "lib"):
        return Outcome(mutant, "unviable")
    return climb(tests, rungs, mutant)


def chosen_of(
    files: Sequence[str], size: int | None, seed: int, together: bool
) -> set[tuple[str, str]]:
    """Choose mutants of `files`, as pairs of file and key.

    `size` of them are drawn with `seed`; None for all. With `together`, none that needs its own
    build.
    """
    every = [(file, m) for file in files for m in mutants_of(file)]
    bodies = [(file, m.key) for file, m in every if m.body or not together]
    return set(random.Random(seed).sample(bodies, size) if size else bodies)


def batches(
    files: Sequence[str], again: bool, chosen: set[tuple[str, str]] | None
) -> Iterable[list[Mutant]]:
    """Yield the mutants to run: files of one package together, up to MANY mutants."""
    batch: list[Mutant] = []
    for file in files:
        known = {} if again else remembered(file)
        done = {key for key, result in known.items() if result != "missed"}
        more = [m for m in mutants_of(file) if m.key not in done]
        more = [m for m in more if chosen is None or (file, m.key) in chosen]
        if (
            batch
            and more
            and (len(batch) + len(more) > MANY or batch[0].package != more[0].package)
        ):
            yield batch
            batch = []
        first = batch[-1].id + 1 if batch else 1
        batch += [replace(m, id=i) for i, m in enumerate(more, start=first)]
    if batch:
        yield batch


def report(
    files: Sequence[str],
    jobs: int,
    again: bool,
    near_alone: bool,
    chosen: set[tuple[str, str]] | None,
) -> bool:
    """Run the mutants of `files` and print the survivors; return True if all are listed."""
    results = {file: {} if again else remembered(file) for file in files}
    for batch in batches(files, again, chosen):
        start, count = time.monotonic(), 0
        for outcome in test(batch, jobs, near_alone):
            mutant = outcome.mutant
            by = f" by {outcome.by}" if outcome.by else ""
            results[mutant.file][mutant.key] = outcome.result + by
            keep(mutant.file, results[mutant.file])
            count += 1
            if outcome.result == "missed" and mutant.key not in allowed_in(mutant.file):
                print(f"survivor in {mutant.file}:\n  {mutant.key}", flush=True)
        print(f"{count} mutants in {time.monotonic() - start:.0f} s", flush=True)
    fine = [summed_up(file, results[file]) for file in files]
    return all(fine)


def main() -> int:
    """Run the mutants of the given files."""
    parser = argparse.ArgumentParser(description="Mutation testing; see reports/mutation.md.")
    parser.add_argument("files", nargs="*", help="source files; all of them if none is given")
    parser.add_argument("--shard", default="0/1", help="k/n: every n-th file from the k-th on")
    parser.add_argument("--jobs", type=int, default=1, help="mutants to run at the same time")
    parser.add_argument("--again", action="store_true", help="also those known to be caught")
    parser.add_argument("--near", action="store_true", help="the nearest tests alone: a first look")
    parser.add_argument("--together", action="store_true", help="none that needs its own build")
    parser.add_argument("--sample", type=int, help="number of mutants to draw from these files")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--write", action="store_true", help="write the results into the page")
    options = parser.parse_args()
    paths = (path for glob in SCOPE for path in ROOT.glob(glob))
    left = (path for path in paths if not any(map(path.match, LEFT_OUT)))
    scope = sorted(str(path.relative_to(ROOT)) for path in left)
    k, n = map(int, options.shard.split("/"))
    files = options.files or scope[k::n]
    if options.write:
        write_page(scope)
        return 0
    chosen = None
    if options.sample or options.together:
        chosen = chosen_of(files, options.sample, options.seed, options.together)
    return 0 if report(files, options.jobs, options.again, options.near, chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
