"""Tests of the kernel through our reader of tc.

Each test of a qdisc has commands that set up, a command under test, its exit code, and a pattern
for the output of `tc qdisc show`. Compared are: the command under test is accepted or refused, and
the qdiscs and classes of our state have the words that the pattern names.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from sojourn import InputError, _sojourn

FOLDER = "tools/testing/selftests/tc-testing/tc-tests/qdiscs"
"""Tests of qdiscs in the source of Linux."""

DEVICES = {"$DUMMY": "dum0", "$ETH": "eth0", "$DEV0": "dev0", "$DEV1": "dev1", "$DEV2": "dev2"}
"""Names for the variables of the tests."""

Words = dict[str, Any]


@dataclass(frozen=True)
class Test:
    """Test of the kernel.

    Attributes
    ----------
    id : str
        Identifier, four hexadecimal digits.
    kind : str
        Name of the file, which is a qdisc.
    setup : tuple of str
        Commands before it.
    command : str
        Command under test.
    accepted : bool
        True if its exit code is 0.
    verify : str
        Command whose output is compared.
    pattern : str
        Regular expression for a line of that output.
    count : int
        Number of lines that match it.
    """

    id: str
    kind: str
    setup: tuple[str, ...]
    command: str
    accepted: bool
    verify: str
    pattern: str
    count: int


@dataclass(frozen=True)
class Outcome:
    """Comparison of a test.

    Attributes
    ----------
    test : Test
        Test.
    words : int
        Words of the pattern that were compared.
    differences : tuple of str
        What our reader says otherwise; empty if nothing.
    """

    test: Test
    words: int
    differences: tuple[str, ...]


def read(linux: Path) -> list[Test]:
    """Return the tests in the source of Linux.

    Raises
    ------
    InputError
        If the directory has no such tests.
    """
    files = sorted((linux / FOLDER).glob("*.json"))
    if not files:
        raise InputError(f"{linux}: has no {FOLDER}/*.json; give the source of Linux")
    return [parsed(path.stem, one) for path in files for one in json.loads(path.read_text())]


def parsed(kind: str, entry: Words) -> Test:
    """Return a test from an entry of a file."""
    # A command may be a list with the exit codes that are allowed.
    setup = [one if isinstance(one, str) else one[0] for one in entry["setup"]]
    return Test(
        id=entry["id"],
        kind=kind,
        setup=tuple(_named(one) for one in setup),
        command=_named(entry["cmdUnderTest"]),
        accepted=entry["expExitCode"] == "0",
        verify=_named(entry["verifyCmd"]),
        pattern=entry["matchPattern"],
        count=int(entry["matchCount"]),
    )


def _named(command: str) -> str:
    """Return a command with the names of tc and of the devices."""
    for variable, name in DEVICES.items():
        command = command.replace(variable, name)
    return command.replace("$TC", "tc").replace("$IP", "ip")


def compared(test: Test) -> bool:
    """Return True if the command under test is one of tc for a qdisc or a class."""
    return re.match(r"tc (qdisc|class) ", test.command) is not None


def compare(test: Test) -> Outcome:
    """Return the comparison of a test whose command is of a qdisc or a class."""
    lines = [*(one for one in test.setup if one.startswith("tc ")), test.command]
    state = json.loads(_sojourn.tc_state("\n".join(lines)))
    answers = [one["error"] for one in state["commands"]]
    last = answers[-1] if answers else "is not read as a command"
    if (last is None) != test.accepted:
        expected = "accepted" if test.accepted else "refused"
        return Outcome(test, 0, (f"{expected} in Linux; ours: {last or 'accepted'}",))
    device = re.search(r"\bdev (\S+)", test.verify)
    here = [one for one in state["devices"] if device is None or one["dev"] == device[1]]
    low, high = _Line.of(test, "1"), _Line.of(test, "9")
    if low is None or high is None:
        return Outcome(test, 0, ())  # queues that the kernel makes, as many as the device has
    return Outcome(test, len(low.words), tuple(_shown(test, here, low, high)))


@dataclass(frozen=True)
class _Line:
    """Line that a pattern matches."""

    object: str
    kind: str
    major: str | None
    minor: str
    words: Words
    is_read: bool

    @staticmethod
    def of(test: Test, digit: str) -> "_Line | None":
        """Return a line with `digit` for each digit that the pattern leaves open."""
        tokens = _sample(test, digit)
        text = " ".join(tokens)
        match = re.match(r"(qdisc|class) ([a-z]\w*) ?([0-9a-f]+:)?([0-9a-f]*)", text)
        if match is None:
            return None
        objects, kind, major, minor = match.groups()
        return _Line(objects, kind, major, minor, *_words(tokens, kind))


def _shown(test: Test, devices: list[Words], low: _Line, high: _Line) -> Iterator[str]:
    """Yield the words of the pattern that the state does not have."""
    qdiscs = [one for device in devices for one in device["qdiscs"]]
    same = [one for one in qdiscs if one["kind"] == low.kind and low.major in (None, one["handle"])]
    name = f"{low.kind} {low.major or ''}".strip()
    if test.count == 0:
        if same and low.object == "qdisc" and not low.words:
            yield f"{name} does not exist in Linux"
        return
    if not same:
        yield f"{name} exists in Linux"
        return
    if low.object == "class":
        if low.kind not in ("htb", "hfsc", "drr", "qfq") or not low.minor:
            return  # a band, which the qdisc has with its number, or the root class of hfsc
        classes = [one for device in devices for one in device["classes"]]
        same = [one for one in classes if one["id"] == f"{low.major}{low.minor}"]
    if not low.is_read:
        yield "the pattern is not read as a line of output"
    here = [_completed(one, low.kind) for one in same]
    rows = [tuple(_differences(one, low.words, high.words)) for one in here]
    yield from min(rows, key=len, default=("the class exists in Linux",))


NEEDED = {"ets": "bands 16", "tbf": "mtu 2k limit 9k"}
"""Words without which a line is not read, for patterns that leave them out."""

GAP = "..."
"""Token for any text between two parts of a pattern."""


def _sample(test: Test, digit: str) -> list[str]:
    """Return the words of a line that the pattern matches, with `digit` for each open digit."""
    text = re.sub(r"\.[*+]\??", f" {GAP} ", test.pattern.replace("\\.", "\0"))
    text = re.sub(r"\[[^\]]*\]([*+?]|\{[0-9,]+\})?", digit, text)
    text = re.sub(r"\(([^()|]*)\)\{([0-9]+)\}", lambda group: group[1] * int(group[2]), text)
    text = re.sub(r"\(([^()|]*)(\|[^()]*)?\)[?+*]?", r"\1", text)
    text = re.sub(r"\\(.)", r"\1", text).replace("\0", ".")
    # A pattern may go on with the line of a qdisc below.
    first = re.split(r"(?<=\S) qdisc ", text.strip("^$ "))[0]
    return first.split()


def _words(tokens: list[str], kind: str) -> tuple[Words, bool]:
    """Return the words that a line names, and True if it is read."""
    where = 3 if len(tokens) > 2 and tokens[2].endswith(":") else 2
    head, setup = f"qdisc {kind} 1: root", ""
    if tokens[0] == "class":
        where = 3
        head, setup = f"class {kind} 1:1 root", f"qdisc {kind} 1: root\n"
    rest = tokens[where:]
    while rest and rest[0] in ("root", "refcnt", "parent", "dev", "leaf"):
        rest = rest[1 if rest[0] == "root" else 2 :]
    parts = [text.split() for text in " ".join(rest).split(GAP)]
    # A part may end with a word without its value.
    for more, ends in product(("", NEEDED.get(kind, "")), product((0, 1), repeat=len(parts))):
        read = [part[: len(part) - end] for part, end in zip(parts, ends, strict=True)]
        part = [word for one in read for word in one]
        words = _parsed(f"{setup}{head} {more} {' '.join(part)}")
        if words is not None:
            return {
                name: value for name, value in words.items() if _named_in(part, name, value)
            }, True
    return {}, False


def _named_in(tokens: list[str], name: str, value: Any) -> bool:
    """Return True if a word of this name, or a word of a choice, is in a line."""
    text = value.split() if isinstance(value, str) else []
    return not {*name.split(), *text}.isdisjoint(tokens)


def _parsed(output: str) -> Words | None:
    """Return the words of the last line of an output; None if it is not read."""
    try:
        state = json.loads(_sojourn.tc_state(output))
    except InputError:
        return None
    if any(one["error"] for one in state["commands"]) or not state["devices"]:
        return None
    lines = state["devices"][0]["classes"] or state["devices"][0]["qdiscs"]
    return dict(lines[0]["words"]) if lines else None


def _differences(here: Words, low: Words, high: Words) -> Iterator[str]:
    """Yield the words of a line that differ; what is not fixed differs between low and high."""
    for name, value in low.items():
        mine = here.get(name)
        if value == high.get(name) and not _equal(mine, value):
            yield f"{name}: {mine}, in Linux {value}"
        if isinstance(value, list) and isinstance(mine, list) and value != high.get(name):
            pairs = zip(mine, value, high[name], strict=False)
            if any(a != b for a, b, c in pairs if b == c):
                yield f"{name}: {mine}, in Linux {value}"


def _completed(line: Words, kind: str) -> Words:
    """Return the words of a line of our state, with those that Linux computes or prints so."""
    words: Words = dict(line["words"])
    match kind:
        case "ets":
            words.setdefault("bands", words.get("strict", 0) + len(words.get("quanta", ())))
            last = [words["bands"] - 1] * 16
            words["priomap"] = (words.get("priomap", []) + last)[:16]
        case "htb" if "ceil" in words:  # with a clock that is fine enough
            words = {"burst": words["mtu"], "cburst": words["mtu"], **words}
        case "gred" if words.get("queues"):  # tc prints the virtual queue after the qdisc
            names = ("vq", "prio", "limit", "min", "max")
            words |= zip(names, words["queues"][-1], strict=False)
        case "cake" if "bandwidth" not in words:
            words["rate"] = "bandwidth unlimited"
    return words


def _equal(mine: Any, theirs: Any) -> bool:
    """Return True for values that are equal up to the digits that tc prints."""
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) >= len(theirs) and all(map(_equal, mine, theirs))
    if isinstance(mine, int | float) and isinstance(theirs, int | float):
        return abs(mine - theirs) <= max(1e-2 * abs(mine), 2e-5)
    return bool(mine == theirs)


def run(tests: list[Test]) -> list[Outcome]:
    """Return the comparison of each test of a qdisc or a class."""
    return [compare(one) for one in tests if compared(one)]
