"""Tables for the terminal that fit its width and never split a word.

A table that is too wide first wraps its headers and its prose at spaces. Then a table with prose
becomes a list of records, and any other one folds its columns into several blocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

Cell = str | Text
"""Contents of a cell. Strings are literal text, without markup."""

GAP = "  "
"""Separator of columns."""

PROSE_MIN = 24
"""Smallest width of a column of prose, in characters."""

NAME_MIN = 12
"""Smallest width to which a name is shortened, in characters."""

INDENT = "    "
"""Indentation of the lines of a record."""


@dataclass
class Column:
    """Column with its header, cells, alignment and minimum width; `prose` is wrapped at spaces."""

    header: str
    prose: bool = False
    left: bool = False
    least: int = 0
    cells: list[Text] = field(default_factory=list)

    @property
    def natural(self) -> int:
        """Width of the column if nothing is wrapped."""
        return max([self.least, _width(self.header), *map(_widest_line, self.cells)])

    @property
    def narrow(self) -> int:
        """Width of the column with its header, and its prose, wrapped."""
        longest = (_longest(cell.plain) if self.prose else cell.cell_len for cell in self.cells)
        least = min(self.natural, PROSE_MIN) if self.prose else self.least
        return max([least, _longest(self.header), *longest])


class Table:
    """Table with names in its first `left` columns, then numbers or prose.

    `prose` has the indices of columns with text to wrap. Other columns have at least `least`
    characters.
    """

    def __init__(
        self, *headers: str, left: int = 1, prose: Sequence[int] = (), least: int = 0
    ) -> None:
        self.columns = [
            Column(header, n in prose, n < left or n in prose, least if n >= left else 0)
            for n, header in enumerate(headers)
        ]
        self._keys = [n for n in range(left) if n not in prose]
        self.headings: dict[int, Text] = {}
        self._rows = 0

    def add_row(self, *cells: Cell) -> None:
        """Add a row; missing cells are empty."""
        for n, column in enumerate(self.columns):
            cell = cells[n] if n < len(cells) else ""
            text = cell.copy() if isinstance(cell, Text) else Text(cell)
            text.rstrip()
            column.cells.append(text)
        self._rows += 1

    def add_heading(self, heading: str) -> None:
        """Start a group of rows with a heading."""
        self.headings[self._rows] = Text(heading, style="bold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line in self.lines(options.max_width):
            line.rstrip()
            line.no_wrap, line.overflow = True, "ignore"
            yield line

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the lines of the table for a terminal of `width` characters."""
        every = range(len(self.columns))
        widths = [column.natural for column in self.columns]
        if _total(widths) > width:
            widths = self._wrapped(width)
        if _total(widths) <= width:
            yield from self._block(every, widths, width)
        elif any(column.prose for column in self.columns) or self._narrowest() > width:
            yield from self._records(width)
        else:
            yield from self._folded(width)

    def _wrapped(self, width: int) -> list[int]:
        """Return the widths with wrapped headers and prose; the remaining width goes to prose."""
        widths = [column.narrow for column in self.columns]
        most = [column.natural if column.prose else 0 for column in self.columns]
        # One character at a time to the narrowest column.
        for _ in range(width - _total(widths)):
            short = [n for n in range(len(widths)) if widths[n] < most[n]]
            if not short:
                break
            widths[min(short, key=lambda n: widths[n])] += 1
        return widths

    def _narrowest(self) -> int:
        """Return the width of the narrowest blocks, with the last name shortened."""
        names = [self.columns[n].narrow for n in self._keys]
        names[-1:] = [min(NAME_MIN, width) for width in names[-1:]]
        others = (c.narrow for n, c in enumerate(self.columns) if n not in self._keys)
        return _total([*names, max(others, default=0)])

    def _folded(self, width: int) -> Iterator[Text]:
        """Yield the columns in blocks, each with the names."""
        widths = [column.narrow for column in self.columns]
        rest = [n for n in range(len(self.columns)) if n not in self._keys]
        if self._keys:
            widest = max((widths[n] for n in rest), default=0)
            last = self._keys[-1]
            over = _total([*(widths[n] for n in self._keys), widest]) - width
            if over > 0:
                widths[last] = max(NAME_MIN, widths[last] - over)
        blocks = self._blocks(rest, widths, width)
        # The smallest width with the same number of blocks balances them.
        for narrower in range(width - 1, 0, -1):
            fewer = self._blocks(rest, widths, narrower)
            if len(fewer) > len(blocks):
                break
            blocks = fewer
        for n, block in enumerate(blocks):
            if n:
                yield Text()
            yield from self._block(block, [widths[k] for k in block], width)

    def _blocks(self, rest: Sequence[int], widths: Sequence[int], width: int) -> list[list[int]]:
        """Distribute the columns `rest` among blocks of this width, at least one each."""
        blocks: list[list[int]] = []
        for n in rest:
            if not blocks or _total([widths[k] for k in [*blocks[-1], n]]) > width:
                blocks.append([*self._keys])
            blocks[-1].append(n)
        return blocks

    def _block(self, block: Sequence[int], widths: Sequence[int], width: int) -> Iterator[Text]:
        """Yield the header, a rule and the rows of some columns."""
        columns = [self.columns[n] for n in block]
        headers = [
            _fold(Text(column.header, style="bold"), width)
            for column, width in zip(columns, widths, strict=True)
        ]
        high = max(len(header) for header in headers)
        headers = [[Text()] * (high - len(header)) + header for header in headers]
        yield from _row(columns, headers, widths)
        yield Text("─" * _total(widths))
        for n in range(self._rows):
            if n in self.headings:
                if n:
                    yield Text()
                yield _shortened(self.headings[n], width)
            cells = [
                _fold(c.cells[n], w) if c.prose else [_shortened(c.cells[n], w)]
                for c, w in zip(columns, widths, strict=True)
            ]
            yield from _row(columns, cells, widths)

    def _records(self, width: int) -> Iterator[Text]:
        """Yield a record per row: its names (with headers if several), then the other cells."""
        names = self._keys or [0]
        for n in range(self._rows):
            if n:
                yield Text()
            if n in self.headings:
                yield from _fold(self.headings[n], width)
            title = [self.columns[k].cells[n] for k in names]
            if len(title) > 1:
                title = [_labelled(self.columns[k].header, self.columns[k].cells[n]) for k in names]
            for line in _fold(Text(GAP).join(map(_bold, title)), width):
                yield line
            for k, column in enumerate(self.columns):
                cell = column.cells[n]
                if k in names or not cell:
                    continue
                for line in _fold(_labelled(column.header, cell), width - len(INDENT)):
                    yield Text(INDENT) + line


def _row(
    columns: Sequence[Column], cells: Sequence[list[Text]], widths: Sequence[int]
) -> Iterator[Text]:
    """Yield the lines of a row of cells that may have several lines."""
    for n in range(max(len(cell) for cell in cells)):
        line, gap = Text(), 0
        for column, cell, width in zip(columns, cells, widths, strict=True):
            part = cell[n] if n < len(cell) else Text()
            room = max(0, width - part.cell_len)
            line.append(" " * (gap + (0 if column.left else room))).append_text(part)
            gap = len(GAP) + (room if column.left else 0)
        yield line


def _fold(text: Text, width: int) -> list[Text]:
    """Wrap each line of `text` at spaces; a word wider than `width` has its own line."""
    lines: list[Text] = []
    for paragraph in text.split("\n"):
        begun, used = 0, 0
        for start, end in _words(paragraph.plain):
            if start > begun and _width(paragraph.plain[begun:end]) > width:
                lines.append(paragraph[begun:used])
                begun = start
            used = end
        lines.append(paragraph[begun:used])
    return lines


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each word."""
    start = 0
    for word in text.split(" "):
        if word:
            yield start, start + len(word)
        start += len(word) + 1


def _shortened(text: Text, width: int) -> Text:
    """Shorten `text` to `width` by removing its middle."""
    if text.cell_len <= width:
        return text
    plain, head = text.plain, max(1, (width - 1) // 2)
    while head and _width(plain[:head]) > (width - 1) // 2:
        head -= 1
    tail = len(plain)
    while tail > head and _width(plain[tail - 1 :]) <= width - 1 - _width(plain[:head]):
        tail -= 1
    return text[:head] + "…" + text[tail:]


def _labelled(label: str, text: Text) -> Text:
    return Text(f"{label}: ", style="dim") + text if label else text


def _bold(text: Text) -> Text:
    bold = text.copy()
    bold.stylize("bold")
    return bold


def _widest_line(cell: Text) -> int:
    return max(map(_width, cell.plain.split("\n")))


def _total(widths: Sequence[int]) -> int:
    """Return the width of columns with their separators."""
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


def _longest(text: str) -> int:
    return max(map(_width, text.split()), default=0)


def _width(text: str) -> int:
    """Return the width of `text` in a terminal, where some characters take two columns."""
    return cell_len(text)
