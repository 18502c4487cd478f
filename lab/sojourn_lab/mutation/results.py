"""Results of mutation testing: kept between runs, compared with the list of survivors, shown."""

import datetime
import hashlib
import json
import re
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path

from sojourn_lab import ROOT
from sojourn_lab.mutation.source import mutants_of

RESULTS = ROOT / "target" / "mutants" / "results"
ALLOWED = Path(__file__).with_name("allowed.toml")
PAGE = ROOT / "reports" / "mutation.md"
SURVIVORS = ROOT / "reports" / "mutation-survivors.md"
ROW = re.compile(r"^\| `(crates/[^`]+)` \|.*$", re.MULTILINE)


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


def summed_up(file: str, results: dict[str, str]) -> bool:
    """Print the numbers of a file; return True if its survivors are those that are listed."""
    missed = {key for key, result in results.items() if result == "missed"}
    allowed = set(allowed_in(file))
    for key in sorted(allowed - missed):
        print(f"listed in allowed.toml for {file}, but no survivor: {key}")
    numbers = ", ".join(f"{n} {word}" for word, n in outcome_counts(results).items())
    print(f"{file}: {numbers}; {len(missed - allowed)} to be looked at", flush=True)
    return missed == allowed


def outcome_counts(results: dict[str, str]) -> dict[str, int]:
    """Count the results."""
    words = [result.split()[0] for result in results.values()]
    return {word: words.count(word) for word in ("caught", "timeout", "missed", "unviable")}


def write_page(files: Sequence[str]) -> None:
    """Bring reports/mutation.md and the page of survivors up to date.

    `files` are the files that were run wholly.
    """
    page = PAGE.read_text()
    rows = {match[1]: match[0] for match in ROW.finditer(page)}
    for file in files:
        results = remembered(file)
        missed = {key for key, result in results.items() if result == "missed"}
        known = missed == set(allowed_in(file))
        if results and known and set(results) == {mutant.key for mutant in mutants_of(file)}:
            n = outcome_counts(results)
            cells = [sum(n.values()), n["caught"], n["timeout"], n["unviable"], n["missed"]]
            numbers = " | ".join(map(str, cells))
            date = datetime.date.fromtimestamp(kept_in(file).stat().st_mtime)
            rows[file] = f"| `{file}` | {date} | {numbers} |"
    titles = "| file | date | mutants | caught | timeout | unviable | survivors |"
    table = [titles, "|---|---|---:|---:|---:|---:|---:|", *(rows[f] for f in sorted(rows))]
    page = filled(page, "table", table)
    PAGE.write_text(filled(page, "summary", textwrap.wrap(summary(list(rows.values())), 100)))
    SURVIVORS.write_text(filled(SURVIVORS.read_text(), "survivors", survivor_lines()))


def summary(rows: Sequence[str]) -> str:
    """Return the totals of the rows of the table as a sentence."""
    cells = [[int(cell) for cell in row.split("|")[3:8]] for row in rows]
    mutants, caught, timeout, unviable, survivors = (
        sum(column) for column in zip(*cells, strict=True)
    )
    return (
        f"In {len(rows)} Rust files, the tests catch {caught + timeout} of {mutants - unviable} "
        f"mutants that compile. The other {survivors} are listed, each with its reason."
    )


def survivor_lines() -> list[str]:
    """Return the lines of the list of survivors with their reasons."""
    lines = []
    for file, entries in sorted(tomllib.loads(ALLOWED.read_text()).items()):
        lines += ["", f"`{file}`", ""]
        for entry in entries:
            why = textwrap.wrap(
                entry["why"],
                100,
                initial_indent="- ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
            lines += [*why, *(f"  - `{name}`" for name in entry["mutants"])]
    return lines


def filled(page: str, name: str, lines: Sequence[str]) -> str:
    """Replace the text between the marks of the part `name` of the page."""
    head, rest = page.split(f"<!-- {name} -->\n", 1)
    tail = rest.split("<!-- end -->", 1)[1]
    return f"{head}<!-- {name} -->\n" + "\n".join([*lines, "<!-- end -->"]) + tail
