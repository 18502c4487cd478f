"""Mutation testing: assembly of mutants, and the list of survivors."""

import re
import tomllib
from collections.abc import Sequence

import pytest

from sojourn_lab import ROOT
from sojourn_lab.mutation import rust as mutants
from sojourn_lab.mutation.ladder import Rung, ladder
from sojourn_lab.mutation.results import ALLOWED, SURVIVORS
from sojourn_lab.mutation.source import Mutant, body_of, switched

TEXT = """
#[inline(always)]
fn twice(x: u32) -> u32 {
    x + x
}

fn most(list: [u32; 2]) -> u32 {
    list[0].max(list[1])
}
"""


def mutant(number: int, old: str, new: str) -> Mutant:
    """Return the mutant of TEXT that replaces the first `old`."""
    start = TEXT.index(old)
    function = TEXT.rindex("fn ", 0, start), TEXT.index("}", start) + 1
    return Mutant(number, "x.rs", old, start, start + len(old), new, body_of(TEXT, function))


def test_all_mutants_of_a_file_are_arms_of_a_match() -> None:
    """Each line knows its mutant, so that compiler errors can be assigned."""
    chosen = [mutant(1, "+", "-"), mutant(2, "x + x", "0"), mutant(3, "0", "1")]
    new, owners = switched(TEXT, chosen)
    lines = [line.strip() for line in new.split("\n")]
    of: dict[int, list[str]] = {number: [] for number in range(4)}
    for line, owner in zip(lines, owners, strict=True):
        of[owner].append(line)
    arms = {number: [line for line in of[number] if line] for number in of}
    assert arms[1] == ["1u32 => {", "x - x", "}"]
    assert arms[2] == ["2u32 => {", "0", "}"]
    assert arms[3] == ["3u32 => {", "list[1].max(list[1])", "}"]
    assert arms[0][2] == "match crate::mutant::id(1) {"
    assert arms[0].count("match crate::mutant::id(3) {") == 1
    assert arms[0][0] == "#[inline]"
    assert arms[0].count("x + x") == arms[0].count("list[0].max(list[1])") == 1


@pytest.mark.parametrize(
    "text", ["const fn one() -> u32 { 1 }", "fn all(&self) -> impl Iterator<Item = u32> { x }"]
)
def test_other_mutants_are_built_alone(text: str) -> None:
    """Constant functions run in the compiler; `impl Trait` is one type."""
    assert body_of(text, (0, len(text))) is None
    plain = "fn f<'a>(Pair { a, b }: Pair, c: [u8; 2]) -> u32 { 1 }"
    assert body_of(plain, (0, len(plain))) == (plain.rindex("{") + 1, len(plain) - 1)


def function_of(name: str) -> str:
    """Return the name of the function that a mutant changes."""
    change, _, at = name.partition(" @ ")
    path = re.split(" -> | with ", change.removeprefix("replace "))[0]
    if at:
        path = change.rpartition(" in ")[2]
    return path.rpartition("::")[2]


def test_listed_survivors_exist_and_have_a_reason() -> None:
    """A changed line, or a function of another name, needs a new look at its survivors."""
    listed = tomllib.loads(ALLOWED.read_text())
    for file, entries in listed.items():
        text = (ROOT / file).read_text()
        lines = {line.strip() for line in text.splitlines()}
        for entry in entries:
            assert len(entry["why"]) > 20, f"{file}: {entry}"
            for name in entry["mutants"]:
                _, _, at = name.partition(" @ ")
                code = re.sub(r" \(\d+\)$", "", at)  # the number of a line that occurs again
                assert not at or code.replace("«", "").replace("»", "") in lines, f"{file}: {name}"
                assert re.search(rf"\bfn {function_of(name)}\b", text), f"{file}: {name}"


def test_the_page_has_the_listed_survivors() -> None:
    """The page has the survivors of the list, and no others."""
    listed = tomllib.loads(ALLOWED.read_text()).values()
    names = [name for entries in listed for entry in entries for name in entry["mutants"]]
    _, _, survivors = SURVIVORS.read_text().partition("<!-- survivors -->")
    assert sorted(re.findall(r"^  - `(.+)`$", survivors, re.MULTILINE)) == sorted(names)


def test_a_file_is_tested_by_the_tests_that_mention_it() -> None:
    """The order of tests follows from the file's name."""
    near, far = ladder(ROOT, "crates/aqm/src/aqm/red.rs")
    assert near[0].only == ("aqm::red::",)
    assert {rung.target for rung in near} == {"lib", "linux"}
    assert far[0] == ("sojourn-aqm", "exhaustive", ("flows::", "red::"), (), ())
    assert (("SOJOURN_DISCIPLINE", "red"),) in [rung.env for rung in far]
    near, far = ladder(ROOT, "crates/sim/src/endpoint/tcp/rfc.rs")
    assert near[0].only == ("endpoint::tcp::rfc::",)
    assert (near[-1].target, far[0].target) == ("tcp_reopen", "golden")


def test_a_rung_is_built_for_the_mutants_that_the_earlier_ones_left() -> None:
    """Each mutant ends at the rung that catches it; without one, it is missed."""
    unit, replay = Rung("sojourn-aqm", "lib"), Rung("sojourn-sim", "linux")
    caught = {(1, "lib"), (2, "linux"), (5, "linux")}
    calls = []

    class Shown(mutants.Tests):
        def run(self, rung: Rung, mutant: Mutant) -> str:
            calls.append((mutant.id, rung.target))
            return "caught" if (mutant.id, rung.target) in caught else "missed"

    some = [mutant(k, "+", "-") for k in range(1, 6)]
    both: Sequence[Rung] = (unit, replay)
    rungs = {m.id: both[: 1 if m.id == 4 else 2] for m in some}
    outcomes = list(mutants.climb_together(Shown(), rungs, some, 1))
    ends = {1: ("caught", "lib"), 2: ("caught", "linux"), 5: ("caught", "linux")}
    expected = [mutants.Outcome(m, *ends.get(m.id, ("missed",))) for m in some]
    assert sorted(outcomes, key=lambda outcome: outcome.mutant.id) == expected
    assert calls == [*((k, "lib") for k in range(1, 6)), *((k, "linux") for k in (2, 3, 5))]
