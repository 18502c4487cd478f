"""A sweep: a scenario, what varies in it, and seeds; every combination is run once."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn, folders
from sojourn._sojourn import InputError
from sojourn.advice import warn
from sojourn.axes import Label, points, read_axes
from sojourn.campaign import Made, Run, campaign
from sojourn.inputs import near, text_of, why
from sojourn.output import naming, replacing
from sojourn.parsing import parse_toml
from sojourn.scenario import Scenario, Table, load, plain, to_json
from sojourn.settings import compared_link, set_seed
from sojourn.standard import Standard, read_metrics
from sojourn.statistics import interval
from sojourn.store import Store

if TYPE_CHECKING:
    import polars as pl

KEYS = ("scenario", "axes", "together", "skip", "seeds", "metrics", "link", "until")
"""What a sweep file may say."""

UNTIL = ("metrics", "relative", "least", "most")
"""What `until` may say."""

SEEDS_MAX = 1_000_000


@dataclass(frozen=True)
class Until:
    """Run seeds until the intervals of `metrics` (columns) are narrow, at every point.

    Narrow: half the 95 % interval is at most `relative` of the mean. From `least` to `most` seeds.
    """

    metrics: tuple[str, ...]
    relative: float
    least: int = 5
    most: int = 100


@dataclass(frozen=True)
class Sweep:
    """What `sweep` runs: a scenario, the names of axes, scenarios with labels, seeds, a measure."""

    base: Table
    names: Sequence[str]
    points: Sequence[tuple[Mapping[str, Label], Table]]
    seeds: Sequence[int]
    measure: Standard
    until: Until | None = None


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep file (.toml). Raises InputError with its name and the path of what is wrong."""
    path = Path(path)
    try:
        text = text_of(path, path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {why(error)}") from None
    try:
        tree = parse_toml(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    try:
        for key in tree:
            if key not in KEYS:
                raise InputError(f'unknown key "{key}"{near(key, KEYS)}')
        if "scenario" not in tree:
            raise InputError('scenario: say which, like scenario = "uplink.toml"')
        given = tree.pop("scenario")
        base = load(path.parent / given) if isinstance(given, str) else given
        return make_sweep(base, **tree)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"{path}: ") else f"{path}: {text}") from None


def make_sweep(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    axes: Mapping[str, Any] = {},
    *,
    seeds: int | Sequence[int] = 1,
    together: Sequence[Sequence[str]] = (),
    skip: Sequence[Mapping[str, Any]] = (),
    metrics: Sequence[Any] = (),
    link: str | None = None,
    until: Mapping[str, Any] | None = None,
) -> Sweep:
    """Put a sweep together; the arguments are those of `sweep`."""
    tree = plain(load(scenario) if isinstance(scenario, str | Path) else scenario)
    read = read_axes(axes)
    where = compared_link(tree, link)
    return Sweep(
        tree,
        [axis.name for axis in read],
        list(points(tree, read, together, skip)),
        _seeds(seeds, tree.get("seed", 1)),
        Standard(where, read_metrics(metrics)),
        None if until is None else _until(until),
    )


def sweep(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    axes: Mapping[str, Any],
    *,
    seeds: int | Sequence[int] = 1,
    together: Sequence[Sequence[str]] = (),
    skip: Sequence[Mapping[str, Any]] = (),
    metrics: Sequence[Any] = (),
    link: str | None = None,
    until: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
    force: bool = False,
) -> "pl.DataFrame":
    """Run `scenario` at every combination of `axes` with every seed, and give a row for each run.

    `axes` maps names to values (see `sojourn.axes`): {"bottleneck.qdisc": ["codel", sj.Pie()]}.
    `seeds` counts up from the scenario's, or lists them; the same seed draws the same numbers at
    every point, so differences between disciplines are paired. `together` names axes that move in
    step, `skip` combinations of labels that are left out. A row has the labels, `seed`, the
    numbers of `link` (default as in `compare`), of the other links and of the groups of flows, and
    `metrics` (`sojourn list metrics`). `until` = {"metrics": [...], "relative": 0.05, "least": 5,
    "most": 100} runs seeds until the 95 % interval of the mean of these columns is so narrow.

    With `out`, a folder, each run is stored as soon as it is over, and one that is there already is
    not made again. A folder that holds something else is refused; `force` writes there all the
    same, and replaces the runs of another scenario. Runs go over threads, or over `executor`,
    anything with the interface of concurrent.futures.
    """
    import polars as pl

    made = run_sweep(
        make_sweep(
            scenario,
            axes,
            seeds=seeds,
            together=together,
            skip=skip,
            metrics=metrics,
            link=link,
            until=until,
        ),
        out=out,
        executor=executor,
        jobs=jobs,
        progress=progress,
        force=force,
    )
    return pl.DataFrame(made.rows, infer_schema_length=None)


def run_sweep(
    asked: Sweep,
    *,
    out: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
    force: bool = False,
) -> Made:
    """Make the runs of a sweep that `out` lacks.

    Raises InputError if `out` holds something else, unless `force`: then runs of another scenario
    are replaced.
    """
    store = None if out is None else Store(out)
    if out is not None and store is not None:
        base = json.loads(_sojourn.canonical(to_json(asked.base)))
        if folders.claim(Path(out), "sweep", folders.identity_of(base), force=force):
            store.clear()
        _note(Path(out), asked, base)

    warn(_examples(asked))

    def go(runs: Sequence[Run]) -> Made:
        return campaign(runs, store=store, executor=executor, jobs=jobs, progress=progress)

    def some(at: Sequence[int], seeds: Sequence[int]) -> list[Run]:
        return [
            Run(asked.points[k][0], set_seed(asked.points[k][1], seed), asked.measure)
            for k in at
            for seed in seeds
        ]

    every = list(range(len(asked.points)))
    if asked.until is None:
        return go(some(every, asked.seeds))
    # So many seeds more at a time where it is not narrow yet, until it is everywhere.
    until, first = asked.until, asked.seeds[0]
    rows: dict[int, list[dict[str, Any]]] = {k: [] for k in every}
    made, packets, wall_s, count, wide = 0, 0, 0.0, until.least, every
    while True:
        begun = [range(first + len(rows[k]), first + count) for k in wide]
        part = go([run for k, seeds in zip(wide, begun, strict=True) for run in some([k], seeds)])
        made, packets, wall_s = made + part.made, packets + part.packets, wall_s + part.wall_s
        place = 0
        for k, seeds in zip(wide, begun, strict=True):
            rows[k] += part.rows[place : place + len(seeds)]
            place += len(seeds)
        wide = [k for k in wide if not _narrow(rows[k], until)]
        if not wide or count >= until.most:
            return Made(
                [row for k in every for row in rows[k]], made, packets, wall_s, part.damaged
            )
        count = min(until.most, count + max(1, count // 2))


def _examples(asked: Sweep) -> Iterator[Table]:
    """Give canonical scenarios of points that have every value of every axis among them."""
    seen: set[tuple[str, Any]] = set()
    for labels, tree in asked.points:
        if not seen.issuperset(labels.items()):
            seen.update(labels.items())
            yield json.loads(_sojourn.canonical(to_json(tree)))


def _note(directory: Path, asked: Sweep, base: Table) -> None:
    """Write down what is swept, beside the rows: a file for each sweep that shares the folder."""
    told = {
        "sojourn": _sojourn.version(),
        "engine": _sojourn.engine(),
        "scenario": base,
        "axes": {
            name: list(dict.fromkeys(labels[name] for labels, _ in asked.points))
            for name in asked.names
        },
        "seeds": None if asked.until else [min(asked.seeds), max(asked.seeds)],
        "until": None if asked.until is None else asdict(asked.until),
        "measured": asked.measure.identity,
    }
    text = json.dumps(told, indent=2) + "\n"
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with replacing(
        directory / f"_sweep-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    ) as part:
        part.write_text(text, encoding="utf-8")


def _narrow(rows: Sequence[Mapping[str, Any]], until: Until) -> bool:
    for name in until.metrics:
        if name not in rows[0]:
            raise InputError(f'until.metrics: no column "{name}"{near(name, list(rows[0]))}')
        values = [row[name] for row in rows if row[name] is not None]
        found = interval(values)
        if len(values) < 2 or not found.half <= until.relative * abs(found.mean):
            return False
    return True


def _seeds(given: Any, first: int) -> Sequence[int]:
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= SEEDS_MAX:
            raise InputError(f"seeds: {given} is out of range, allowed: 1 to {SEEDS_MAX}")
        return range(first, first + given)
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    if not listed or not given or not all(type(seed) is int and seed >= 0 for seed in given):
        raise InputError(f"seeds: {given!r} is no number of seeds, and no list of them")
    if len(set(given)) < len(given):
        raise InputError("seeds: a seed is there twice")
    return list(given)


def _until(given: Mapping[str, Any]) -> Until:
    for key in given:
        if key not in UNTIL:
            raise InputError(f'until: unknown key "{key}"{near(key, UNTIL)}')
    names, relative = given.get("metrics"), given.get("relative")
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise InputError('until.metrics: name the columns, like ["sojourn_p99_s"]')
    if not isinstance(relative, int | float) or not 0 < relative < 1:
        raise InputError(f"until.relative: {relative!r} is out of range, allowed: 0 to 1")
    least, most = given.get("least", Until.least), given.get("most", Until.most)
    if type(least) is not int or type(most) is not int or not 2 <= least <= most <= SEEDS_MAX:
        raise InputError(f"until: least {least!r} and most {most!r}; allowed: 2 <= least <= most")
    return Until(tuple(names), float(relative), least, most)
