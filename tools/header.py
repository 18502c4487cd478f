"""Read the description of a discipline from its Rust file: module header and variables."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

Spec = dict[str, Any]

SOURCES = Path(__file__).parent.parent / "crates/aqm/src"

HEADINGS = (
    *("Source", "Decides", "Measures", "Symbols", "Algorithm", "Departures", "Linux", "Cost"),
)
"""In the order of the files; the test `tidy` checks it."""

BASES = ("red", "pi", "codel", "pie", "wfq", "dual")
"""Algorithms that others are based on, whose variables these have as well."""


def law_inside(name: str) -> str:
    """Return the AQM algorithm of a combination such as `wfq_codel`, otherwise an empty string."""
    return "" if _file(name) else name.partition("_")[2]


def with_state_size(spec: Spec) -> tuple[Path, str] | None:
    """Return the file of a discipline and its text with the right size of the state under Cost.

    None for combinations and others without a file of their own.
    """
    path = _file(spec["name"])
    if path is None:
        return None
    return path, re.sub(
        r"(\*\*Cost\*\* )\d+( bytes of state)", rf"\g<1>{spec['state_bytes']}\2", path.read_text()
    )


@cache
def text(name: str) -> str:
    """Return the Rust file of a discipline, or of the scheduler of a combination."""
    path = _file(name) or _file(name.partition("_")[0], combination=True)
    if not path:
        raise SystemExit(f"gen: the file of {name} is not found")
    return path.read_text()


def _file(name: str, *, combination: bool = False) -> Path | None:
    files = {"droptail": "drop_tail"} | ({} if combination else {"fq": "fq_paced"})
    stem = files.get(name, name)
    return next(SOURCES.glob(f"*/{stem}.rs"), None)


def sections(name: str) -> dict[str, str]:
    """Return the text under each heading."""
    lines = [line for line in text(name).split("\n") if line.startswith("//!")]
    words = " ".join(line.removeprefix("//!").strip() for line in lines)
    parts = re.split(rf"\*\*({'|'.join(HEADINGS)})\*\*", words)
    bodies = {title: plain(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    for title in HEADINGS:
        if title not in bodies and title not in ("Symbols", "Linux"):
            raise SystemExit(f"gen: the file of {name} has no {title}")
    return bodies


def plain(words: str) -> str:
    """Replace rustdoc links by plain text."""
    return re.sub(r"\[(`[^`]+`)\]", r"\1", words.strip())


def sentence(text: str) -> str:
    """Return `text` with a full stop, and an initial capital unless it begins with a symbol."""
    text = text.strip()
    if re.match(r"([a-z]{2,}|a)[ ,:;.-]", text):
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def numbered(words: str) -> list[str]:
    """Return `(1) one (2) two` as a Markdown list, after the text before it."""
    first, *rest = re.split(r"(?:^|(?<=\s))\((\d+)\) ", words)
    items = [f"{n}. {sentence(part)}" for n, part in zip(rest[::2], rest[1::2], strict=True)]
    if not items:
        return [sentence(first)]
    before = [sentence(first).rstrip(".:") + ":", ""] if first.strip() else []
    return [*before, *items]


def gauges(name: str, shown: Sequence[str]) -> dict[str, str]:
    """Return the description of each variable in `shown`."""
    files = [text(name), *(text(base) for base in BASES)]
    texts: dict[str, str] = {}
    for gauge in shown:
        about = next((words for file in files for words in _about(file, gauge)), "")
        if not about:
            raise SystemExit(f"gen: {gauge} of {name} has no description")
        texts[gauge] = about
    return texts


def _about(file: str, gauge: str) -> Iterator[str]:
    """Yield the comment above the `visit` call, then the comments of its fields."""
    shows = re.search(rf'((?: *// .*\n)*) *visit\("{gauge}", (.*)\);', file)
    if not shows:
        return
    if shows[1]:
        yield plain(" ".join(line.strip().removeprefix("// ") for line in shows[1].splitlines()))
    fields = re.findall(r"self\.(\w+)", shows[2])
    for field in fields:
        doc = re.search(rf"((?: *///.*\n)+) *(?:pub(?:\(super\))? )?{field}: ", file)
        if doc:
            yield plain(
                " ".join(x.strip().removeprefix("///").strip() for x in doc[1].splitlines())
            )


def departures(file: Path, about: str = "") -> list[str]:
    """Return the paragraph **Departures** of a module header as lines of text, without its mark.

    The text begins with `about`. It is empty if the header has no such paragraph.
    """
    lines = _module(file)
    first = next((i for i, line in enumerate(lines) if line.startswith("**Departures**")), None)
    if first is None:
        return []
    end = next((i for i in range(first, len(lines)) if not lines[i]), len(lines))
    text = plain(" ".join(lines[first:end]).removeprefix("**Departures**: "))
    text = about + text if about else text[0].upper() + text[1:]
    return textwrap.wrap(text, 100, break_on_hyphens=False)


def algorithm(file: Path) -> list[str]:
    """Return the section **Algorithm** of a module header as Markdown; empty if there is none."""
    lines = _module(file)
    if "**Algorithm**" not in lines:
        return []
    first = lines.index("**Algorithm**") + 1
    end = next(i for i in range(first, len(lines)) if lines[i].startswith("**"))
    text = [plain(line) for line in lines[first:end]]
    steps = [line if re.match(r"\d+\. |$", line) else f"   {line}" for line in text]
    return ["## Algorithm", *steps]


def _module(file: Path) -> list[str]:
    """Return the lines of a module header."""
    return [line[3:].strip() for line in file.read_text().splitlines() if line.startswith("//!")]
