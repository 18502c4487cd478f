"""Mutants of a file: the list of cargo-mutants, and the source text with all of them in it."""

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn_lab import ROOT


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


def mutants_of(file: str) -> list[Mutant]:
    """List the mutants of `file`, numbered from 1 on."""
    text = (ROOT / file).read_text()
    listed = listing(file, text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(place: dict[str, int]) -> int:
        return starts[place["line"] - 1] + place["column"] - 1

    mutants: list[Mutant] = []
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
        mutants.append(Mutant(number, file, key, *change, body))
    return mutants


LISTED: dict[str, tuple[str, list[dict[str, Any]]]] = {}
"""The text of each file when it was listed, and what cargo-mutants listed."""


def listing(file: str, text: str) -> list[dict[str, Any]]:
    """Return the mutants of `file` as cargo-mutants lists them.

    It takes seconds to read the workspace, so that all files of a package are listed at once.
    """
    if LISTED.get(file, ("", []))[0] != text:
        package = Path(*Path(file).parts[:2])
        sources = {str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.rs")}
        texts = {name: (ROOT / name).read_text() for name in sources | {file}}
        command = ["cargo", "mutants", "--list", "--json", "--file", f"{package}/**/*.rs"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        records: dict[str, list[dict[str, Any]]] = {name: [] for name in texts}
        for one in json.loads(listed):
            records[one["file"]].append(one)
        LISTED.update({name: (texts[name], records[name]) for name in texts})
    return LISTED[file][1]


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

    A function has the number of its first mutant. No function has to be inlined: with all its
    bodies, one inlined into another, a batch of TCP senders took rustc more than ten minutes.
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
    return new.replace("#[inline(always)]", "#[inline]"), [*owners, 0]
