"""What the Rust file of a discipline says of it: the headings of its header, its variables."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "crates/aqm/src"

HEADINGS = ("Source", "Decides", "Measures", "Symbols", "The law", "Departures", "Cost")
"""In the order of the files; `tidy` holds them to it."""

BASES = ("red", "pi", "codel", "pie")
"""Laws that others are made of, whose variables these show as well."""


@cache
def text(name: str) -> str:
    """Give the Rust file of a discipline."""
    stem = {"droptail": "drop_tail"}.get(name, "fq" if name.startswith("fq_") else name)
    found = list(SOURCES.glob(f"*/{stem}.rs"))
    if len(found) != 1:
        raise SystemExit(f"gen: the file of {name} is not found")
    return found[0].read_text()


def sections(name: str) -> dict[str, str]:
    """Give what stands under each heading."""
    lines = [line for line in text(name).split("\n") if line.startswith("//!")]
    words = " ".join(line.removeprefix("//!").strip() for line in lines)
    parts = re.split(rf"\*\*({'|'.join(HEADINGS)})\*\*", words)
    found = {title: plain(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    for title in HEADINGS:
        if title not in found and title != "Symbols":
            raise SystemExit(f"gen: the file of {name} has no {title}")
    return found


def plain(words: str) -> str:
    """Take away what only rustdoc understands: links to items."""
    return re.sub(r"\[(`[^`]+`)\]", r"\1", words.strip())


def numbered(words: str) -> list[str]:
    """Write `(1) one (2) two` as a list, with what stands before it."""
    first, *rest = re.split(r"\((\d)\) ", words)
    items = [
        f"{n}. {part[:1].upper()}{part[1:].strip()}"
        for n, part in zip(rest[::2], rest[1::2], strict=True)
    ]
    before = [first.strip().rstrip(":") + (":" if items else "")] if first.strip() else []
    return [*before, *([""] if before and items else []), *items]


def gauges(name: str, shown: Sequence[str]) -> dict[str, str]:
    """Say of each variable that a law shows what it is."""
    files = [text(name), *(text(base) for base in BASES)]
    found: dict[str, str] = {}
    for gauge in shown:
        about = next((words for file in files for words in _about(file, gauge)), "")
        if not about:
            raise SystemExit(f"gen: nothing says what {gauge} of {name} is")
        found[gauge] = about
    return found


def _about(file: str, gauge: str) -> Iterator[str]:
    """Give the comment above the line that shows it, or that of the field which it shows."""
    shows = re.search(rf'((?: *// .*\n)*) *see\("{gauge}", (.*)\);', file)
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
