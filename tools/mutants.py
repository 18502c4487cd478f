"""Mutation testing: find small changes of the code that no test notices.

cargo-mutants lists the mutants of a file. To build and test each by itself takes 40 s, most of it
the compiler's. So the mutants of several files are built at once: the body of each function becomes
`match mutant::id(..) { 1 => { first mutant } ... _ => { original } }`, and the environment variable
SOJOURN_MUTANT selects one of them. A mutant then costs the time of its tests. Each test is run once
without a mutant, to record which functions it calls and how long it takes. A mutant is run on the
tests that call its function: those nearest to the file first, and quick ones before slow ones. The
first failure ends the run.

A survivor must be listed in tests/mutants/allowed.toml with the reason why no test can or need
notice it; any other survivor makes this program exit with 1. See docs/mutation.md.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

from mutants_tests import Rung, ladder

ROOT = Path(__file__).parent.parent
ROOM = ROOT / "target" / "mutants"
TREE, BUILD, RESULTS = ROOM / "tree", ROOM / "build", ROOM / "results"
ALLOWED = ROOT / "tests" / "mutants" / "allowed.toml"
PAGE = ROOT / "docs" / "mutation.md"
SCOPE = (
    "crates/aqm/src/**/*.rs",
    "crates/sim/src/endpoint/tcp/**/*.rs",
    "crates/sim/src/endpoint/cc/*.rs",
)
LEFT_OUT = (
    "testing.rs",
    "tests.rs",
    "aqm/src/error.rs",
    "aqm/src/missing.rs",
    "aqm/src/params.rs",
    "aqm/src/params/*.rs",
)
"""Files of tests alone, and those that read and describe parameters and write messages."""
ROW = re.compile(r"^\| `(crates/[^`]+)` \|.*$", re.MULTILINE)
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


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    id: int
    """From 1 within a batch."""
    file: str
    key: str
    """Its name in allowed.toml, the same while lines move: cargo-mutants' description without the
    position, and the line with the changed text in «» unless a whole body is replaced."""
    start: int
    end: int
    replacement: str
    body: tuple[int, int] | None
    """The body of the function around it; none outside of functions and where all bodies of a
    function cannot be arms of one `match`."""

    @property
    def package(self) -> str:
        """Package of its file."""
        return "sojourn-" + Path(self.file).parts[1]


@dataclass
class Outcome:
    """Fate of a mutant (caught, timeout, missed or unviable), and the tests that decided it."""

    mutant: Mutant
    result: str
    by: str = ""


def mutants_of(file: str) -> list[Mutant]:
    """List the mutants of `file`, numbered from 1 on."""
    command = ["cargo", "mutants", "--list", "--json", "--file", file]
    listed = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    text = (ROOT / file).read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(place: dict[str, int]) -> int:
        return starts[place["line"] - 1] + place["column"] - 1

    found: list[Mutant] = []
    seen: dict[str, int] = {}
    for number, one in enumerate((one for one in listed if not describes(one)), start=1):
        start, end = (offset(one["span"][k]) for k in ("start", "end"))
        first = text.rfind("\n", 0, start) + 1
        last = text.index("\n", end)
        at = f"{text[first:start]}«{text[start:end]}»{text[end:last]}".strip()
        whole = one["genre"] == "FnValue" or "\n" in at
        span = one["function"] and one["function"]["span"]
        body = span and body_of(text, (offset(span["start"]), offset(span["end"])))
        what = one["name"].split(": ", 1)[1]
        change = (start, end, one["replacement"])
        name = what if whole else f"{what} @ {at}"
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name} ({seen[name]})"
        found.append(Mutant(number, file, key, *change, body))
    return found


def describes(listed: dict[str, Any]) -> bool:
    """Return True for a mutant of `Display` or `Debug`, or of the size of a discipline's state."""
    name = listed["function"] and listed["function"]["function_name"]
    return bool(name) and name.endswith(("::fmt", "::state"))


def body_of(text: str, function: tuple[int, int]) -> tuple[int, int] | None:
    """Return the span of a function's body, or None if its body cannot be a `match`.

    This excludes functions evaluated by the compiler, and those whose arms would differ in type.
    """
    depth = 0
    for i in range(*function):
        depth += (text[i] in "([") - (text[i] in ")]")
        if text[i] == "{" and depth == 0:
            signature = text[function[0] : i]
            single = re.search(r"\bconst\s+fn\b|->.*\bimpl\b", signature, re.DOTALL)
            return None if single else (i + 1, function[1] - 1)
    raise ValueError(f"a function without a body: {text[slice(*function)]}")


def changed(text: str, mutant: Mutant, within: tuple[int, int]) -> str:
    """Return the part `within` of `text` with the mutant's change."""
    return text[within[0] : mutant.start] + mutant.replacement + text[mutant.end : within[1]]


def by_function(mutants: Iterable[Mutant]) -> dict[tuple[int, int], list[Mutant]]:
    """Group the mutants of a file by the outermost body around each."""
    bodies = {m.body for m in mutants if m.body}
    outer = [b for b in bodies if not any(o != b and o[0] <= b[0] and b[1] <= o[1] for o in bodies)]

    def inside(body: tuple[int, int]) -> list[Mutant]:
        return [m for m in mutants if m.body and body[0] <= m.body[0] and m.body[1] <= body[1]]

    return {body: inside(body) for body in sorted(outer)}


def switched(text: str, mutants: Sequence[Mutant]) -> tuple[str, list[int]]:
    """Return `text` with all `mutants` in it, and the number of the mutant of each line.

    A function has the number of its first mutant.
    """
    new, owners, done = "", [], 0

    def add(piece: str, owner: int) -> None:
        nonlocal new
        new += piece
        owners.extend([owner] * piece.count("\n"))

    for body, inside in by_function(mutants).items():
        add(f"{text[done : body[0]]}\nmatch crate::mutant::id({inside[0].id}) {{\n", 0)
        for mutant in inside:
            add(f"{mutant.id}u32 => {{\n{changed(text, mutant, body)}\n}}\n", mutant.id)
        add("_ => {" + text[slice(*body)] + "}\n}\n", 0)
        done = body[1]
    add(text[done:], 0)
    return new, [*owners, 0]


def sync() -> None:
    """Bring the copy of the repository up to date. Times of change are those of the copying."""
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
            told = json.loads(line)
            if told["reason"] == "compiler-message" and told["message"]["level"] == "error":
                errors.append(told["message"])
            if told["reason"] == "compiler-artifact" and told["executable"]:
                self.binaries[package, target] = Path(told["executable"])
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
        record, found = ROOM / f"called-{os.getpid()}", []
        for name in (line[:-6] for line in listed.splitlines() if line.endswith(": test")):
            record.unlink(missing_ok=True)
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            end = self.execute(rung, ["--exact", name], 600, {"SOJOURN_CALLED": str(record)})
            if end != "missed":
                sys.exit(f"fails without a mutant: {name}, of {rung.target} of {rung.package}")
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            called = record.read_text().split() if record.exists() else []
            found.append(Reach(name, seconds, frozenset(map(int, called))))
        return found


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
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(lambda m: climb(tests, rungs(m), m), left)
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


def allowed_in(file: str) -> dict[str, str]:
    """Return the survivors that are listed for `file`, with their reasons."""
    listed = tomllib.loads(ALLOWED.read_text()).get(file, [])
    return {name: entry["why"] for entry in listed for name in entry["mutants"]}


def remembered(file: str) -> dict[str, str]:
    """Return the results of an earlier run, if the file has not changed since."""
    path = kept_in(file)
    kept = json.loads(path.read_text()) if path.exists() else {}
    return kept.get("results", {}) if kept.get("source") == digest(file) else {}


def kept_in(file: str) -> Path:
    """Return the path of the results of a file."""
    return RESULTS / (file.replace("/", "__") + ".json")


def digest(file: str) -> str:
    """Return a hash of the file's code: its text without unit tests and lines of comment."""
    code = (ROOT / file).read_text().split("#[cfg(test)]\nmod tests")[0]
    lines = (line.strip() for line in code.splitlines())
    code = "\n".join(line for line in lines if not line.startswith("//"))
    return hashlib.sha256(code.encode()).hexdigest()


def keep(file: str, results: dict[str, str]) -> None:
    """Store the results of a file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept_in(file).write_text(json.dumps({"source": digest(file), "results": results}))


def batches(files: Sequence[str], again: bool) -> Iterable[list[Mutant]]:
    """Yield the mutants to run: files of one package together, up to MANY mutants."""
    batch: list[Mutant] = []
    for file in files:
        known = {} if again else remembered(file)
        done = {key for key, result in known.items() if result != "missed"}
        more = [m for m in mutants_of(file) if m.key not in done]
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


def report(files: Sequence[str], jobs: int, again: bool, near_alone: bool) -> bool:
    """Run the mutants of `files` and print the survivors; return True if all are listed."""
    results = {file: {} if again else remembered(file) for file in files}
    for batch in batches(files, again):
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


def summed_up(file: str, results: dict[str, str]) -> bool:
    """Print the numbers of a file; return True if its survivors are those that are listed."""
    missed = {key for key, result in results.items() if result == "missed"}
    allowed = set(allowed_in(file))
    for key in sorted(allowed - missed):
        print(f"listed in allowed.toml for {file}, but no survivor: {key}")
    numbers = ", ".join(f"{n} {word}" for word, n in tally(results).items())
    print(f"{file}: {numbers}; {len(missed - allowed)} to be looked at", flush=True)
    return missed == allowed


def tally(results: dict[str, str]) -> dict[str, int]:
    """Count the results."""
    words = [result.split()[0] for result in results.values()]
    return {word: words.count(word) for word in ("caught", "timeout", "missed", "unviable")}


def write_page(files: Sequence[str]) -> None:
    """Bring docs/mutation.md up to date with the files that were run wholly."""
    page = PAGE.read_text()
    rows = {found[1]: found[0] for found in ROW.finditer(page)}
    for file in files:
        results = remembered(file)
        missed = {key for key, result in results.items() if result == "missed"}
        known = missed == set(allowed_in(file))
        if results and known and set(results) == {mutant.key for mutant in mutants_of(file)}:
            n = tally(results)
            cells = [sum(n.values()), n["caught"], n["timeout"], n["unviable"], n["missed"]]
            numbers = " | ".join(map(str, cells))
            date = datetime.date.fromtimestamp(kept_in(file).stat().st_mtime)
            rows[file] = f"| `{file}` | {date} | {numbers} |"
    titles = "| file | date | mutants | caught | timeout | unviable | survivors |"
    table = [titles, "|---|---|---:|---:|---:|---:|---:|", *(rows[f] for f in sorted(rows))]
    page = filled(page, "table", table)
    survivors = []
    for file, entries in sorted(tomllib.loads(ALLOWED.read_text()).items()):
        survivors += ["", f"`{file}`", ""]
        for entry in entries:
            why = textwrap.wrap(
                entry["why"],
                100,
                initial_indent="- ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
            survivors += [*why, *(f"  - `{name}`" for name in entry["mutants"])]
    PAGE.write_text(filled(page, "survivors", survivors))


def filled(page: str, name: str, lines: Sequence[str]) -> str:
    """Replace the text between the marks of the part `name` of the page."""
    head, rest = page.split(f"<!-- {name} -->\n", 1)
    tail = rest.split("<!-- end -->", 1)[1]
    return f"{head}<!-- {name} -->\n" + "\n".join([*lines, "<!-- end -->"]) + tail


def main() -> int:
    """Run the mutants of the given files."""
    parser = argparse.ArgumentParser(description="Mutation testing; see docs/mutation.md.")
    parser.add_argument("files", nargs="*", help="source files; all of them if none is given")
    parser.add_argument("--shard", default="0/1", help="k/n: every n-th file from the k-th on")
    parser.add_argument("--jobs", type=int, default=1, help="mutants to run at the same time")
    parser.add_argument("--again", action="store_true", help="also those known to be caught")
    parser.add_argument("--near", action="store_true", help="the nearest tests alone: a first look")
    parser.add_argument("--write", action="store_true", help="write the results into the page")
    options = parser.parse_args()
    found = (path for glob in SCOPE for path in ROOT.glob(glob))
    left = (path for path in found if not any(map(path.match, LEFT_OUT)))
    scope = sorted(str(path.relative_to(ROOT)) for path in left)
    k, n = map(int, options.shard.split("/"))
    files = options.files or scope[k::n]
    if options.write:
        write_page(scope)
        return 0
    return 0 if report(files, options.jobs, options.again, options.near) else 1


if __name__ == "__main__":
    sys.exit(main())
