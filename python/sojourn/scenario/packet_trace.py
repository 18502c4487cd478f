"""Traffic traces: CSV files of packets or flows, read into columns for Rust; packet captures.

Files have the columns `time_s,size_bytes[,flow]` in time order and may be gzipped. `flow` is the
index of the sender in its group. All packets of a capture have one sender.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, printable, shown
from sojourn._util.public import public
from sojourn.source import Trace

LATEST_S = 1e7
"""Latest time, in seconds."""

LARGEST = 1e15
"""Largest size of a flow, in bytes."""

UINT32_MAX = 4_294_967_295


@public
def load_trace(path: str | Path, **more: Any) -> Trace:
    r"""Return a traffic source that sends the packets or flows of a file.

    Parameters
    ----------
    path : str or Path
        CSV file with the columns `time_s`, `size_bytes` and, for a group of several flows, `flow`;
        or a packet capture (pcap or pcapng), whose packets have one sender. It may be gzipped.
    **more : optional
        Further parameters of `sojourn.source.Trace`.

    Returns
    -------
    sojourn.source.Trace
        The source, for the `source` of a flow.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, or a value is out of range.

    Examples
    --------
    >>> import tempfile
    >>> import sojourn as sj
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("time_s,size_bytes\n0,1500\n0.5,1500\n")
    ...     file.flush()
    ...     source = sj.load_trace(file.name)
    >>> source.time_s
    [0.0, 0.5]
    """
    return Trace(**columns(Path(path)), **more)


def columns(path: Path) -> dict[str, Any]:
    """Read the columns of a trace file."""
    from sojourn._util import captures
    from sojourn._util.csv_table import numbers, read_table

    if captures.is_capture(path):
        capture = captures.read(path)
        return {
            "time_s": (capture.t_ns / 1e9).tolist(),
            "size_bytes": capture.size.astype(int).tolist(),
        }
    table = read_table(path, ("time_s", "size_bytes"), ("flow",))
    read = {
        "time_s": numbers(path, table, "time_s", 0, LATEST_S, whole=False).tolist(),
        "size_bytes": numbers(path, table, "size_bytes", 1, LARGEST).astype(int).tolist(),
    }
    if "flow" in table.columns:
        read["flow"] = numbers(path, table, "flow", 0, UINT32_MAX).astype(int).tolist()
    return read


def is_from_file(flow: Any) -> bool:
    """Return True if the source of `flow` is a trace with a path."""
    source = flow.get("source") if isinstance(flow, Mapping) else None
    return isinstance(source, Mapping) and source.get("name") == "trace" and "path" in source


def inline(tree: Any, folder: Path | None = None) -> Any:
    """Return a scenario with the files of its traffic traces replaced by their columns.

    Paths are relative to `folder`.
    """
    flows = tree.get("flows") if isinstance(tree, Mapping) else None
    if not isinstance(flows, list) or not any(map(is_from_file, flows)):
        return tree
    return {**tree, "flows": [_inline(f, folder) if is_from_file(f) else f for f in flows]}


def _inline(flow: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    source = dict(flow["source"])
    path = source.pop("path")
    where = f"flows.{brief(str(flow.get('name', '?')))}.source.path"
    if not isinstance(path, str):
        raise InputError(f"{where}: {shown(path)} is not a file name")
    if both := {"time_s", "size_bytes", "flow"} & source.keys():
        raise InputError(f"{where}: cannot be combined with {', '.join(sorted(both))}")
    try:
        read = columns((folder or Path()) / path)
    except InputError as error:
        raise InputError(f"{where}: {printable(str(error))}") from None
    return {**flow, "source": {**source, **read}}
