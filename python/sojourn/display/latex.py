"""LaTeX tables: a plain `tabular` that requires no package."""

import re
from collections.abc import Iterable
from pathlib import Path

from sojourn._util.files import write_text
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
"""Replacements of characters that are special in LaTeX or missing from its standard fonts."""


def escaped(text: str) -> str:
    """Escape `text` for LaTeX; control characters become spaces."""
    return "".join(ESCAPES.get(c, c if c.isprintable() else " ") for c in text)


def tabular(table: Table, note: str = "") -> str:
    """Return a table as a `tabular`, with text left-aligned and numbers right-aligned.

    `note` is added as a comment before it.
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
    write_text(path, tabular(table, note))


def _row(cells: Iterable[str]) -> str:
    # Without braces, LaTeX parses a cell that begins with [ or * as an option of the line break.
    return " & ".join(f"{{{cell}}}" if cell[:1] in ("[", "*") else cell for cell in cells) + r" \\"


def _cell(text: str) -> str:
    """Escape a cell; convert indentation, a trailing star and minus signs to LaTeX."""
    indent = r"\quad " if text.startswith("  ") else ""
    star = "$^{*}$" if text.endswith("*") else ""
    body = escaped(text.strip().removesuffix("*" if star else ""))
    return indent + re.sub(r"(?<![\w.-])-(?=\d)", "$-$", body) + star
