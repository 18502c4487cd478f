"""What the Rust file of a discipline says of it: the headings of its header, its variables."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "crates/aqm/src"

HEADINGS = ("Source", "Decides", "Measures", "Symbols", "The law", "Departures", "Cost")
"""In the order of the files; `tidy` holds them to it."""

BASES = ("red", "pi", "codel", "pie", "wfq")
"""Laws that others are made of, whose variables these show as well."""


def law_inside(name: str) -> str:
    """Name the law in every queue of a scheduler, if it is such a combination: `wfq_codel`."""
    return "" if _file(name) else name.partition("_")[2]


@cache
def text(name: str) -> str:
    """Give the Rust file of a discipline, or of the scheduler of a combination."""
    path = _file(name) or _file(name.partition("_")[0])
    if not path:
        raise SystemExit(f"gen: the file of {name} is not found")
    return path.read_text()


def _file(name: str) -> Path | None:
    stem = {"droptail": "drop_tail"}.get(name, name)
    return next(SOURCES.glob(f"*/{stem}.rs"), None)


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


def sentence(text: str) -> str:
    """Give `text` a full stop, and a capital letter unless it begins with a symbol."""
    text = text.strip()
    if re.match(r"([a-z]{2,}|a)[ ,:;.-]", text):
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def numbered(words: str) -> list[str]:
    """Write `(1) one (2) two` as a list, with what stands before it."""
    first, *rest = re.split(r"(?:^|(?<=\s))\((\d)\) ", words)
    items = [f"{n}. {sentence(part)}" for n, part in zip(rest[::2], rest[1::2], strict=True)]
    if not items:
        return [sentence(first)]
    before = [sentence(first).rstrip(".:") + ":", ""] if first.strip() else []
    return [*before, *items]


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
