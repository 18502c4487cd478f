"""Results on disk: read the files of `Result.save`, and recognise a run that is already stored."""

import json
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.public import public
from sojourn._util.typed_json import checked, decoded, read_json
from sojourn.result import stored, tables
from sojourn.result.result import Result


@public
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
        If a file is missing or is not a file of a result. The message names the file, and the
        field or column.
    """
    directory = Path(directory)
    summary = stored.read_summary(directory / "summary.json", trust=trust)
    scenario, version = summary["scenario"], summary.pop("sojourn")
    links, flows = list(summary["links"]), [flow["name"] for flow in summary["flows"]]
    columns = tables.transfers(directory / "fct.parquet", "fct", tables.TRANSFERS, flows)
    queries = directory / "queries.parquet"
    if queries.exists():
        columns |= tables.transfers(queries, "query", tables.QUERIES, flows)
    delays, groups_of = directory / "delays.parquet", [flow["name"] for flow in scenario["flows"]]
    if delays.exists():
        kinds = {"sojourn": links, "delay": groups_of, "frame_delay": groups_of}
        columns |= tables.delays(delays, kinds)
    if series and "sample" in scenario:
        names = {"link": links} | ({"flow": flows} if scenario["sample_flows"] else {})
        groups = {"group": groups_of}
        columns |= tables.series(directory / "series.parquet", names)
        columns |= tables.series(directory / "group_series.parquet", groups)
    if series and scenario["packet_log"]:
        columns |= tables.packet_log(directory / "packet_log.parquet", links, flows)
    result = Result(json.dumps(summary), columns, _command(directory))
    result.version = version
    return result


def same_run(directory: Path, scenario: dict[str, Any]) -> bool:
    """Return True if `directory` holds the result of this scenario, run by this version.

    `scenario` is canonical.
    """
    try:
        summary = read_json(directory / "summary.json")
        here: bool = summary["scenario"] == scenario
        tables.metadata(directory / "fct.parquet")
        return here and bool(summary["sojourn"] == _sojourn.version())
    except (InputError, KeyError, TypeError):
        return False


def _command(directory: Path) -> list[str]:
    """Return the command line in the metadata of a table."""
    path = directory / "fct.parquet"
    where = f"{path}: metadata sojourn.command"
    text = tables.metadata(path).get("sojourn.command", "[]")
    words: list[str] = checked(decoded(where, text), list[str], where)
    return words
