"""A sweep: a scenario, what varies in it, and seeds; every combination is run once."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.files import naming, replacing
from sojourn._util.inputs import brief, near, shown
from sojourn.result import folders
from sojourn.result.statistics import interval
from sojourn.scenario.advice import warn
from sojourn.scenario.load import Scenario, Table, beside, load, load_toml, plain, to_json
from sojourn.scenario.overrides import compared_link, set_seed
from sojourn.sweeps.axes import Label, points, read_axes
from sojourn.sweeps.columns import Standard, read_metrics
from sojourn.sweeps.runner import OWN, Made, Run, campaign
from sojourn.sweeps.store import Store

if TYPE_CHECKING:
    import polars as pl

KEYS = ("scenario", "axes", "together", "skip", "seeds", "metrics", "link", "until")
"""What a sweep file may say."""

UNTIL = ("metrics", "relative", "least", "most")
"""What `until` may say."""

SEEDS_MAX = 1_000_000
"""The most seeds at a point."""

SEED_MAX = 2**53
"""The largest seed, as in Rust."""


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
    """Read a sweep file (.toml) and validate all of it; nothing is run.

    Raises InputError with the name of the file and the path of what is wrong.
    """
    path = Path(path)
    tree = load_toml(path)
    try:
        for key in tree:
            if key not in KEYS:
                raise InputError(f"unknown key {shown(key)}{near(key, KEYS)}")
        if "scenario" not in tree:
            raise InputError('scenario: say which, like scenario = "uplink.toml"')
        base = _base(path, tree.pop("scenario"))
        return make_sweep(base, **tree)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"{path}: ") else f"{path}: {text}") from None


def _base(path: Path, given: Any) -> Table:
    """Return the scenario of a sweep file: a file beside it, or a table. Validates it."""
    if isinstance(given, str):
        base = load(path.parent / given)
    elif isinstance(given, Mapping):
        base = beside(path.parent, dict(given))
    else:
        told = "is not the name of a scenario file, nor a table"
        raise InputError(f"scenario: {shown(given)} {told}")
    try:
        _sojourn.canonical(to_json(base))
    except InputError as error:
        if isinstance(given, str):
            raise InputError(f"{path.parent / given}: {error}") from None
        dot = ": " if str(error).startswith("unknown key") else "."
        raise InputError(f"scenario{dot}{error}") from None
    return base


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
    """Put a sweep together and validate all of it; the arguments are those of `sweep`.

    Raises InputError for whatever would be refused at any point, or could not be measured there.
    """
    tree = plain(load(scenario) if isinstance(scenario, str | Path) else scenario)
    read = read_axes(axes)
    if link is not None and not isinstance(link, str):
        raise InputError(f"link: {shown(link)} is not the name of a link")
    measure = Standard(compared_link(tree, link), read_metrics(metrics))
    first = json.loads(_sojourn.canonical(to_json(tree)))["seed"]
    asked = Sweep(
        tree,
        [axis.name for axis in read],
        list(points(tree, read, together, skip)),
        _seeds(seeds, first, until is not None),
        measure,
        None if until is None else _until(until),
    )
    _check(asked)
    return asked


def _check(asked: Sweep) -> None:
    """Refuse a sweep that would fail at some point, after runs at others."""
    if not asked.points:
        raise InputError("skip: no point is left to run")
    unset: dict[str, str] = {}
    anywhere: set[str] = set()
    everywhere: set[str] | None = None
    for n, (labels, tree) in enumerate(asked.points):
        try:
            canonical = json.loads(_sojourn.canonical(to_json(tree)))
            missing = dict(asked.measure.missing(canonical))
        except InputError as error:
            at = ", ".join(f"{name} = {shown(label)}" for name, label in list(labels.items())[:4])
            raise InputError(f"{error} (at {at})") from None
        # What a metric names has to exist at some point; where it does not there is no value.
        unset = missing if n == 0 else {k: v for k, v in unset.items() if k in missing}
        columns = set(asked.measure.columns(canonical))
        anywhere |= columns
        everywhere = columns if everywhere is None else everywhere & columns
    for place, told in unset.items():
        raise InputError(f"{place}: {told}")
    for name in asked.names:
        if name in anywhere or name in OWN:
            told = "is the name of a column of results: give the axis another one, and set"
            raise InputError(f"axes.{brief(name)}: {told}")
    for n, name in enumerate(asked.until.metrics if asked.until else ()):
        if everywhere is not None and name not in everywhere:
            told = f"no column {shown(name)}" if name not in anywhere else "not at every point"
            raise InputError(f"until.metrics.{n}: {told}{near(name, sorted(everywhere))}")


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

    `axes` maps names to values: {"bottleneck.qdisc": ["codel", sj.Pie()]}.
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
    if out is None:
        warn(_examples(asked))
        return _make(asked, None, executor, jobs, progress)
    base = json.loads(_sojourn.canonical(to_json(asked.base)))
    is_other = folders.claim(Path(out), "sweep", folders.identity_of(base), force=force)
    warn(_examples(asked))
    store = Store(out)
    with store.writing():
        if is_other:
            store.clear()
        _note(store.directory, asked, base)
        return _make(asked, store, executor, jobs, progress)


def _make(
    asked: Sweep, store: Store | None, executor: Executor | None, jobs: int | None, progress: bool
) -> Made:
    """Make the runs of a sweep that `store` lacks."""

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
        values = [row[name] for row in rows if row[name] is not None]
        found = interval(values)
        if len(values) < 2 or not found.half <= until.relative * abs(found.mean):
            return False
    return True


def _seeds(given: Any, first: int, adaptive: bool) -> Sequence[int]:
    """Return the seeds of a sweep; with `until` (`adaptive`) the first one says where to begin."""
    if adaptive and given != 1:
        told = "until adds seeds as they are needed (from least to most): leave seeds out"
        raise InputError(f"seeds: {shown(given)} does not go with until; {told}")
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= SEEDS_MAX:
            raise InputError(f"seeds: {shown(given)} is out of range, allowed: 1 to {SEEDS_MAX}")
        if first + given - 1 > SEED_MAX:
            told = f"{given} seeds from {first} on exceed {SEED_MAX}"
            raise InputError(f"seeds: {told}")
        return range(first, first + given)
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InputError(f"seeds: {shown(given)} is not a number of seeds, nor a list of them")
    for n, seed in enumerate(given):
        if type(seed) is not int or not 0 <= seed <= SEED_MAX:
            told = f"{shown(seed)} is not a seed, allowed: whole numbers from 0 to {SEED_MAX}"
            raise InputError(f"seeds.{n}: {told}")
    if len(set(given)) < len(given):
        raise InputError("seeds: a seed is there twice")
    return list(given)


def _until(given: Any) -> Until:
    if not isinstance(given, Mapping):
        raise InputError(f"until: {shown(given)} is not a table")
    for key in given:
        if key not in UNTIL:
            raise InputError(f"until: unknown key {shown(key)}{near(key, UNTIL)}")
    names, relative = given.get("metrics"), given.get("relative")
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise InputError('until.metrics: name the columns, like ["sojourn_p99_s"]')
    for n, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"until.metrics.{n}: {shown(name)} is not the name of a column")
    if isinstance(relative, bool) or not isinstance(relative, int | float) or not 0 < relative < 1:
        told = f"{shown(relative)} is out of range, allowed: between 0 and 1"
        raise InputError(f"until.relative: {told}")
    least, most = given.get("least", Until.least), given.get("most", Until.most)
    if type(least) is not int or type(most) is not int or not 2 <= least <= most <= SEEDS_MAX:
        told = f"allowed: 2 <= least <= most <= {SEEDS_MAX}"
        raise InputError(f"until: least {shown(least)} and most {shown(most)}; {told}")
    return Until(tuple(names), float(relative), least, most)
