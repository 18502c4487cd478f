"""Shards of a sweep, for machines that share no folder, and the collection of their folders."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn.result import folders
from sojourn.sweeps.failures import COLUMNS
from sojourn.sweeps.notes import copy_notes
from sojourn.sweeps.remote import local
from sojourn.sweeps.scan import ROW, Parts
from sojourn.sweeps.store import FAILED, Store

if TYPE_CHECKING:
    import polars as pl


PART_ROWS = 10_000
"""Smallest number of rows after which `collect` writes a part."""


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `count` parts of a sweep. Each run is in exactly one of them.

    It has every `count`-th run, so that each shard has points of all kinds.
    """

    number: int
    count: int

    def part(self, length: int) -> range:
        """Return the places in a sequence of `length` that belong to this shard."""
        return range(self.number - 1, length, self.count)


def read_shard(text: Any, name: str = "shard") -> Shard:
    """Return the shard of a text like "3/16". Raises InputError for any other value of `name`."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text) if isinstance(text, str) else None
    if match is None:
        raise InputError(f'{name}: {shown(text)} is not a number and a count, like "3/16"')
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        allowed = f"allowed: 1/{count} to {count}/{count}" if count else "the count must be above 0"
        raise InputError(f"{name}: {shown(text)} is out of range, {allowed}")
    return Shard(number, count)


@dataclass(frozen=True)
class Collected:
    """Result of `collect`: `runs` different runs, and `failed` runs without a result."""

    runs: int
    failed: int


def collect(sources: Sequence[str | Path], out: str | Path, *, force: bool = False) -> Collected:
    """Write the runs of several folders of one sweep into the folder `out`.

    The folders are read only. A run that is in several of them is written once. `out` may have runs
    of the sweep already, and be one of the folders.

    Parameters
    ----------
    sources : sequence of str or Path
        Folders that `sojourn sweep` or `sojourn.sweep` wrote, from the same base scenario; or URLs
        like "s3://bucket/load-1".
    out : str or Path
        Folder to write.
    force : bool, optional
        True replaces the runs of another scenario in `out`.

    Returns
    -------
    Collected
        The numbers of runs.

    Raises
    ------
    InputError
        If a folder has no runs of a sweep, the scenarios differ, or a run has different results in
        two folders.
    """
    if not sources:
        raise InputError("collect: requires at least one folder")
    with ExitStack() as stack:
        places = [stack.enter_context(local(source)) for source in sources]
        folder = stack.enter_context(local(out, writes=True))
        return _collect(places, folder, force=force)


def _collect(places: Sequence[Path], out: Path, *, force: bool) -> Collected:
    identity = _identity(places)
    is_other = folders.claim(out, "sweep", identity, force=force)
    store = Store(out)
    with store.writing():
        if is_other:
            store.clear()
        done = _merged(store, [Store(place) for place in places])
        failures = Store(store.directory / FAILED)
        lost = _merged(failures, [Store(place / FAILED) for place in places])
        for place in places:
            copy_notes(place, store.directory)
    return Collected(len(done), len(lost.filter(~lost.is_in(done.implode()))))


def _merged(store: Store, others: Sequence[Store]) -> "pl.Series":
    """Write the rows of other stores that `store` lacks; return hashes of the keys of all rows.

    The rows are not held in memory together.
    """
    import polars as pl

    there = store.parts()
    parts = Parts((*there, *(path for other in others for path in other.parts())))
    if not parts.paths:
        return pl.Series(dtype=pl.UInt64)
    hashes = parts.hashes()
    once = hashes.filter(pl.struct("run", "row").is_first_distinct())
    _check_equal(parts, once)
    own = Parts(tuple(there)).height if there else 0
    waiting: list[pl.DataFrame] = []
    for frame in parts.chosen(once.filter(pl.col(ROW) >= own)[ROW]):
        waiting.append(frame)
        if sum(map(len, waiting)) >= PART_ROWS:
            store.put_frame(pl.concat(waiting, how="diagonal_relaxed"))
            waiting = []
    if waiting:
        store.put_frame(pl.concat(waiting, how="diagonal_relaxed"))
    return once["key"].unique()


def _identity(places: Sequence[Path]) -> dict[str, Any]:
    """Return the base scenario of all folders."""
    first: dict[str, Any] | None = None
    for place in places:
        folders.check_results(place)
        known = folders.identities(place, "sweep") if folders.kind_of(place) == "sweep" else []
        if not known:
            raise InputError(f"{place}: has no runs of a sweep")
        for one in known:
            first = one if first is None else first
            if differs := folders.difference(first, one):
                raise InputError(f"{place}: its scenario is not the one of {places[0]} ({differs})")
    assert first is not None
    return first


def _check_equal(parts: Parts, once: "pl.DataFrame") -> None:
    """Raise InputError if a run has two results. A run may fail in several ways.

    `once` has the hashes of the rows without repetitions.
    """
    import polars as pl

    if COLUMNS[0] in parts.schema:
        return
    same = once.filter(pl.col("run").is_duplicated())[ROW]
    if len(same):
        labels_of = ["axes", *parts.axes, "seed"]
        firsts = (rows.select(labels_of).sort(labels_of)[:1] for rows in parts.chosen(same))
        one = pl.concat(firsts).sort(labels_of).row(0, named=True)
        labels = ", ".join(f"{name} = {shown(one[name])}" for name in _names(one["axes"]))
        raise InputError(f"{labels}, seed {one['seed']}: two folders have different results")


def _names(text: str) -> list[str]:
    import msgspec

    return msgspec.json.decode(text, type=list[str])
