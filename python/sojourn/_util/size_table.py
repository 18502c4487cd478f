"""Files of flow sizes: `size = "cdf(FILE)"` in a scenario becomes the points of the file.

A line has a size and the share of the flows up to it, 0 to 1 or in per cent (0 to 100), with blanks
or a comma between them. Lines of three numbers have a field in between that is not used, and sizes
in packets of 1460 bytes, as files of pFabric's simulators. A first line of one number is the mean,
and each size is then a step, as in files of Homa's: no size between two lines occurs. A line that
begins with "#" is a comment.

Options follow the name: `cdf(FILE, packet=1442B)` for sizes in packets of that payload,
`cdf(FILE, step)` and `cdf(FILE, linear)`.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.reading import bytes_of_file, text_of
from sojourn._util.units import bytes_of

PACKET = 1460
"""Payload of a packet in files with three columns, bytes."""

POINTS_MAX = 10_000
"""Largest number of lines of a file."""

NAMED_FILE = re.compile(r"cdf\(\s*([^\s,():]+)((?:\s*,\s*[a-z]+(?:\s*=\s*[\w.]+)?)*)\s*\)")
"""A cdf of a file. Points have a blank between value and share, and names of files have none."""

FILE = re.compile(r"cdf\(([^\s,():]+): ([^()]*)\)")
"""A cdf with the name of its file, as canonical scenarios have it."""


class Sizes(NamedTuple):
    """Sizes of a file: points with sizes in bytes and cumulative shares."""

    points: list[tuple[float, float]]

    def text(self, name: str) -> str:
        """Return the distribution as Rust reads it."""
        points = (f"{size:.0f}B {share!r}" for size, share in self.points)
        return f"cdf({name}: {', '.join(points)})"


def inline(flows: list[Any], folder: Path | None) -> list[Any]:
    """Return groups of flows with the points of files; `folder` has the files with relative names.

    Raises InputError with the path of the flow, and the name and line of the file.
    """
    return [_in_flow(flow, folder) for flow in flows]


def without_files(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a table with some sizes in place of each file, for checks that read no files."""
    return {key: _replaced(value, lambda _: "cdf(1B 0, 1kB 1)") for key, value in tree.items()}


def _in_flow(flow: Any, folder: Path | None) -> Any:
    if not isinstance(flow, dict) or not isinstance(flow.get("source"), str | dict):
        return flow
    try:
        source = _replaced(flow["source"], lambda match: _text(match, folder))
    except InputError as error:
        name = flow.get("name")
        where = f"flows.{name}.source" if isinstance(name, str) else "flows.source"
        raise InputError(f"{where}: {error}") from None
    return flow if source == flow["source"] else {**flow, "source": source}


def _replaced(value: Any, text: Callable[[re.Match[str]], str]) -> Any:
    if isinstance(value, str):
        return NAMED_FILE.sub(text, value)
    if isinstance(value, dict):
        return {key: _replaced(one, text) for key, one in value.items()}
    return value


def _text(match: re.Match[str], folder: Path | None) -> str:
    name, options = match[1], [one.strip() for one in match[2].split(",") if one.strip()]
    path = (folder or Path()) / name
    packet, step = None, None
    for option in options:
        key, _, value = (part.strip() for part in option.partition("="))
        match key, value:
            case "packet", _ if re.fullmatch(r"[1-9][0-9]{0,4}B", value):
                packet = float(value[:-1])
            case (("step" | "linear"), ""):
                step = key == "step"
            case _:
                text = f"{match[0]}: unknown option {shown(option)}"
                raise InputError(f"{text} (known: packet=BYTES, step, linear)")
    return read(path, packet=packet, step=step).text(path.name)


def read(path: Path, *, packet: float | None = None, step: bool | None = None) -> Sizes:
    """Read a file of flow sizes.

    Parameters
    ----------
    path : Path
        The file.
    packet : float, optional
        Payload of a packet (bytes) if sizes are in packets.
    step : bool, optional
        True if no size between two lines occurs. By default as the file says.

    Raises
    ------
    InputError
        If the file cannot be read or has no such lines. The message names file and line.
    """
    rows = [*_rows(path)]
    if rows and len(rows[0][1]) == 1:
        step = True if step is None else step
        rows = rows[1:]
    if not rows or len(rows) > POINTS_MAX:
        count = f"{len(rows)} lines, allowed: 1 to {POINTS_MAX}"
        raise InputError(f"{path}: a table of flow sizes has a size and a share per line: {count}")
    columns = len(rows[0][1])
    unit = packet or (PACKET if columns == 3 else 1)
    percent = rows[-1][1][-1] > 1.5
    points = []
    for number, values in rows:
        if len(values) != columns or columns not in (2, 3):
            raise InputError(
                f"{path}: line {number}: {len(values)} numbers, not a size and a share"
            )
        points.append((values[0] * unit, values[-1] / (100 if percent else 1)))
    for (number, _), (before, after) in zip(rows[1:], pairwise(points), strict=True):
        if after[0] < before[0] or after[1] < before[1]:
            raise InputError(f"{path}: line {number}: a size or a share is below the one before it")
    if abs(points[-1][1] - 1) > 1e-6:
        last = "100" if percent else "1"
        text = f"the last share is {rows[-1][1][-1]:g}, not {last}"
        raise InputError(f"{path}: line {rows[-1][0]}: {text}")
    points[-1] = (points[-1][0], 1.0)
    first = points[0]
    if step:
        edges = chain([(first[0], 0.0), first], *_steps(points))
        return Sizes(list(dict.fromkeys(edges)))
    return Sizes([(0.0, 0.0), *points] if first[1] > 0 else points)


def _steps(points: list[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    for before, after in pairwise(points):
        yield [(after[0], before[1]), after]


def _rows(path: Path) -> Iterator[tuple[int, list[float]]]:
    for number, line in enumerate(text_of(path, bytes_of_file(path)).splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            values = [float(word) for word in words]
        except ValueError:
            raise InputError(f"{path}: line {number}: {shown(line)} is no size and share") from None
        if not all(0 <= value < 1e18 for value in values):
            raise InputError(f"{path}: line {number}: {shown(line)} has a number out of range")
        yield number, values


@cache
def named_tables() -> dict[str, dict[str, Any]]:
    """Return the named tables of flow sizes: each with `source`, `mean_bytes` and `points`."""
    return {table["name"]: table for table in json.loads(_sojourn.specs())["sizes"]}


def tables_of(source: Any) -> Iterator[tuple[str, float]]:
    """Return the tables of sizes that a canonical source names, each with its mean size (bytes).

    A table is called by its file, or by its name and source.
    """
    texts = source.values() if isinstance(source, dict) else [source]
    for text in texts:
        if isinstance(text, str) and text in named_tables():
            table = named_tables()[text]
            yield f"{text} ({table['source']})", table["mean_bytes"]
        for match in FILE.finditer(text) if isinstance(text, str) else ():
            points = [point.split() for point in match[2].split(", ")]
            pairs = pairwise([(bytes_of(size), float(share)) for size, share in points])
            mean = sum((q - p) * (a + b) / 2 for (a, p), (b, q) in pairs)
            yield match[1], mean
