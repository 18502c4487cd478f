"""Failed runs of a campaign: what is recorded about each, and how they are listed."""

import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn._util.inputs import QUOTED_MAX
from sojourn._util.public import public
from sojourn._util.units import counted

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("failure_kind", "failure", "failure_attempt")
"""Measured columns of the row of a failed run: kind, message, number of the attempt from 1."""

LISTED = 20
"""Largest number of lines in a list of failures."""

SEEDS = 5
"""Largest number of seeds in a line."""

MESSAGE_MAX = 300
"""Longest message that is kept, in characters."""

PACKAGE = str(Path(__file__).parents[1])


class Fault(NamedTuple):
    """Reason of a failure: the class of the exception, and its message with its place."""

    kind: str
    message: str


@dataclass(frozen=True)
class Failure:
    """Failed run of a campaign: its labels, its seed, and the reason."""

    labels: Mapping[str, Any]
    seed: int
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{_point(self.labels)}seed {self.seed}: {self.kind}: {self.message}"


@public
class RunError(Exception):
    """Some runs failed, or their executor was lost. Finished runs are kept.

    Attributes
    ----------
    failures : tuple of Failure
        The failed runs.
    partial : DataFrame, Comparison or None
        What the function would return, without the failed runs.
    """

    def __init__(self, message: str, failures: Sequence[Failure] = (), partial: Any = None) -> None:
        super().__init__(message)
        self.failures = tuple(failures)
        self.partial = partial

    def __str__(self) -> str:
        return "\n".join([str(self.args[0]), *listed(self.failures)])

    def __reduce__(self) -> tuple[Any, ...]:
        return RunError, (self.args[0], self.failures, self.partial)


def fault_of(error: BaseException) -> Fault:
    """Return the reason of a failure: exception, place in the user's file, notes.

    An exception of Rust, for example, has no place.
    """
    frames = traceback.extract_tb(error.__traceback__)
    foreign = [frame for frame in frames if not frame.filename.startswith(PACKAGE)]
    at = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in (foreign or frames)[-1:]]
    where = ", ".join([*at, *getattr(error, "__notes__", ())])
    message = " ".join(str(error).split())[:MESSAGE_MAX]
    return Fault(type(error).__name__, f"{message} ({where})" if where else message)


def error_of(
    failures: Sequence[Failure], runs: int, out: str | Path | None, partial: Any = None
) -> RunError:
    """Return the exception about the failed runs among `runs`; the others are kept in `out`."""
    message = f"{len(failures)} of {counted(runs, 'run')} failed"
    if out is not None:
        message += f"; the others are in {out}, the same command repeats only those that failed"
    return RunError(message, failures, partial)


def listed(failures: Sequence[Failure]) -> list[str]:
    """Return a line for each failure; if they are many, one for each point and exception."""
    if len(failures) <= LISTED:
        return [str(one) for one in failures]
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for one in failures:
        reason = one.message.partition(", at ")[0]  # the simulated time differs
        groups.setdefault((_point(one.labels), one.kind, reason), []).append(one)
    lines = []
    for (point, kind, _), group in list(groups.items())[:LISTED]:
        seeds = ", ".join(str(one.seed) for one in group[:SEEDS])
        more = f" and {len(group) - SEEDS} more" if len(group) > SEEDS else ""
        word = "seed" if len(group) == 1 else "seeds"
        lines.append(f"{point}{word} {seeds}{more}: {kind}: {group[0].message}")
    if len(groups) > LISTED:
        rest = sum(len(group) for group in list(groups.values())[LISTED:])
        lines.append(f"and {counted(rest, 'more failed run')}")
    return lines


def unresolved(failed: "pl.DataFrame", rows: "pl.DataFrame") -> "pl.DataFrame":
    """Return the last failure of each run that has no result in `rows`."""
    import polars as pl

    if not len(failed):
        return failed
    if len(rows):
        failed = failed.filter(~pl.col("key").is_in(rows["key"].unique().implode()))
    last = failed.sort("failure_attempt", descending=True, maintain_order=True)
    return last.unique(["key", "axes"], keep="first", maintain_order=True)


def failures_of(failed: "pl.DataFrame") -> list[Failure]:
    """Return the failures of the rows of a store of failures."""
    return [
        Failure(
            {name: row[name] for name in json.loads(row["axes"])},
            row["seed"], row["failure_kind"], row["failure"],
        )
        for row in failed.iter_rows(named=True)
    ]  # fmt: skip


def _point(labels: Mapping[str, Any]) -> str:
    """Return the labels of a point as a prefix: "qdisc=codel, flows=4, "."""
    return "".join(f"{name}={_end(str(label))}, " for name, label in labels.items())


def _end(label: str) -> str:
    """Return a label, or its end if it is long: a class after the path of its file."""
    return label if len(label) <= QUOTED_MAX else f"...{label[3 - QUOTED_MAX :]}"
