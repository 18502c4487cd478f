"""Traces of packets or flows from CSV files: Python reads them, Rust gets columns.

Columns `time_s,size_bytes[,flow]` in time order, `flow` the member of the group that sends. Files
may be gzipped.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown

if TYPE_CHECKING:
    from sojourn.scenario.algorithms import Trace

LATEST_S = 1e7
"""The latest time, in seconds."""

LARGEST = 1e15
"""The most bytes of a flow."""

UINT32_MAX = 4_294_967_295


def trace(path: str | Path, **more: Any) -> "Trace":
    """Give the source that sends what the file `path` says; `more` are its parameters."""
    from sojourn.scenario.algorithms import Trace

    return Trace(**columns(Path(path)), **more)


def columns(path: Path) -> dict[str, Any]:
    """Read the columns of a trace."""
    from sojourn._util.csv_table import numbers, read_table

    table = read_table(path, ("time_s", "size_bytes"), ("flow",))
    read = {
        "time_s": numbers(path, table, "time_s", 0, LATEST_S, whole=False).tolist(),
        "size_bytes": numbers(path, table, "size_bytes", 1, LARGEST).astype(int).tolist(),
    }
    if "flow" in table.columns:
        read["flow"] = numbers(path, table, "flow", 0, UINT32_MAX).astype(int).tolist()
    return read


def is_from_file(flow: Any) -> bool:
    """Tell whether the source of `flow` is a trace with a path."""
    source = flow.get("source") if isinstance(flow, Mapping) else None
    return isinstance(source, Mapping) and source.get("name") == "trace" and "path" in source


def inline(tree: Any, folder: Path | None = None) -> Any:
    """Give the scenario `tree` with columns where its traces name files, looked for in `folder`."""
    flows = tree.get("flows") if isinstance(tree, Mapping) else None
    if not isinstance(flows, list) or not any(map(is_from_file, flows)):
        return tree
    return {**tree, "flows": [_inline(f, folder) if is_from_file(f) else f for f in flows]}


def _inline(flow: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    source = dict(flow["source"])
    path = source.pop("path")
    where = f"flows.{flow.get('name', '?')}.source.path"
    if not isinstance(path, str):
        raise InputError(f"{where}: {shown(path)} is not the name of a file")
    if both := {"time_s", "size_bytes", "flow"} & source.keys():
        raise InputError(f"{where}: is given beside {', '.join(sorted(both))}")
    try:
        read = columns((folder or Path()) / path)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return {**flow, "source": {**source, **read}}
