"""Tables for LaTeX: a plain `tabular` that compiles without any package."""

import re
from collections.abc import Iterable
from pathlib import Path

from sojourn._util.files import replacing
from sojourn.display.table import Table

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "…": r"\ldots{}",
}
"""Characters that mean something to LaTeX, or that its usual fonts lack."""


def escaped(text: str) -> str:
    """Return `text` as LaTeX shows it literally; control characters become spaces."""
    return "".join(ESCAPES.get(c, c if c.isprintable() else " ") for c in text)


def tabular(table: Table, note: str = "") -> str:
    """Return `table` as a tabular: text to the left, numbers to the right, groups under headings.

    `note` goes into a comment before it.
    """
    count = len(table.columns)
    lines = [f"% {line}" for line in note.splitlines()]
    lines.append(rf"\begin{{tabular}}{{{''.join('l' if c.left else 'r' for c in table.columns)}}}")
    lines += [r"\hline", _row(escaped(column.header) for column in table.columns), r"\hline"]
    rows = max((len(column.cells) for column in table.columns), default=0)
    for n in range(rows):
        if n in table.headings:
            heading = escaped(table.headings[n].plain)
            lines.append(rf"\multicolumn{{{count}}}{{l}}{{\textbf{{{heading}}}}} \\")
        lines.append(_row(_cell(column.cells[n].plain) for column in table.columns))
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def write(table: Table, path: Path, note: str = "") -> None:
    """Write `table` to `path`. Raises InputError if that fails."""
    with replacing(path) as part:
        part.write_text(tabular(table, note), encoding="utf-8")


def _row(cells: Iterable[str]) -> str:
    # The braces keep a cell that begins with [ or * from being taken for an option of the line.
    return " & ".join(f"{{{cell}}}" if cell[:1] in ("[", "*") else cell for cell in cells) + r" \\"


def _cell(text: str) -> str:
    """Escape a cell: a row below a heading is indented, a star is raised, a minus is a minus."""
    indent = r"\quad " if text.startswith("  ") else ""
    star = "$^{*}$" if text.endswith("*") else ""
    body = escaped(text.strip().removesuffix("*" if star else ""))
    return indent + re.sub(r"(?<![\w.-])-(?=\d)", "$-$", body) + star
