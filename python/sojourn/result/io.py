"""Results on disk: read the files of `Result.save`, and recognise a run that is already stored."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import why
from sojourn._util.lazy import Lazy
from sojourn.custom import trust as trusting
from sojourn.result.result import FATES, SCHEMA, Array, Result

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")


def load_result(directory: str | Path, *, series: bool = True, trust: bool = False) -> Result:
    """Read a result from the files of `Result.save`.

    Parameters
    ----------
    directory : str or Path
        The directory, as passed to `Result.save` or as `--out DIR` of `sojourn run`.
    series : bool, optional
        False skips the series and the packet logs, which can be large.
    trust : bool, optional
        True if Python code that the scenario of the result names may run, when it is run again.
        The default refuses it.

    Returns
    -------
    Result
        The same result that was saved.

    Raises
    ------
    InputError
        If a file is missing, or is not a file of a result.
    """
    directory = Path(directory)
    try:
        summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        trusting.read(summary, directory / "summary.json", trust)
        scenario, version = summary["scenario"], summary.pop("sojourn")
        columns = _transfers(directory / "fct.parquet", "fct", summary)
        if (directory / "queries.parquet").exists():
            columns |= _transfers(directory / "queries.parquet", "query", summary)
        if series and "sample" in scenario:
            columns |= _series(directory / "series.parquet")
            columns |= _series(directory / "groups.parquet")
        if series and scenario["packet_log"]:
            columns |= _packet_log(directory, summary)
        command = json.loads(_metadata(directory)["sojourn.command"])
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {why(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{directory}: is not a result of sojourn: {error}") from None
    result = Result(json.dumps(summary), columns, command)
    result.version = version
    return result


def same_run(directory: Path, scenario: dict[str, Any]) -> bool:
    """Return True if `directory` holds the result of this scenario, run by this version.

    `scenario` is canonical.
    """
    try:
        summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        here: bool = (
            summary["scenario"] == scenario and _metadata(directory)["sojourn.schema"] == SCHEMA
        )
        return here and summary["sojourn"] == _sojourn.version()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _metadata(directory: Path) -> dict[str, str]:
    """Return the metadata that `Result.save` wrote into each table."""
    import polars as pl

    return pl.read_parquet_metadata(directory / "fct.parquet")


def _transfers(path: Path, prefix: str, summary: dict[str, Any]) -> dict[str, Array]:
    frame = _read(path)
    names = [flow["name"] for flow in summary["flows"]]
    return {f"{prefix}/{name}": _column(frame, name, names) for name in frame.columns}


def _packet_log(directory: Path, summary: dict[str, Any]) -> dict[str, Array]:
    frame = _read(directory / "packet_log.parquet")
    names = [flow["name"] for flow in summary["flows"]]
    columns = {}
    for link in summary["links"]:
        rows = frame.filter(frame["link"] == link)
        for name in rows.columns[1:]:
            fate = name == "fate"
            column = _column(rows, name, FATES if fate else names)
            columns[f"packet_log/{link}/{name}"] = column.astype(np.uint8) if fate else column
    return columns


def _series(path: Path) -> dict[str, Array]:
    """Read the series in a file. A column that a link or flow does not have is null there."""
    import polars as pl

    frame = _read(path)
    columns: dict[str, Array] = {}
    for kind, name in frame.select("kind", "name").unique(maintain_order=True).iter_rows():
        rows = frame.filter((pl.col("kind") == kind) & (pl.col("name") == name))
        columns["series/time_s"] = rows["time_s"].to_numpy().copy()
        for what in rows.columns[3:]:
            column = rows[what]
            # NaN (mean of no packets) was saved as null; a column of nulls belongs to other kinds.
            if column.null_count() < len(column) or (kind == "link" and what == "sojourn_s"):
                column = column.fill_null(np.nan) if column.dtype == pl.Float64 else column
                into = f"gauge/{what[6:]}" if what.startswith("gauge_") else what
                columns[f"{kind}s/{name}/{into}"] = column.to_numpy().copy()
    return columns


def _column(frame: "pl.DataFrame", name: str, words: Sequence[str]) -> Array:
    """Return a column; names of flows and fates become indices into `words`."""
    if name not in ("flow", "fate"):
        column: Array = frame[name].to_numpy().copy()
        return column
    place = {word: i for i, word in enumerate(words)}
    return np.array([place[word] for word in frame[name]], dtype=np.uint32)


def _read(path: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error).splitlines()[0]) from None
