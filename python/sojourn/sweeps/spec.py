"""Sweeps: run a scenario at every combination of axes and seeds."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn._sojourn import InputError, ParsedScenario, WarmState
from sojourn._util.inputs import brief, near, printable, shown
from sojourn._util.lazy import Lazy
from sojourn._util.paths import compared_link
from sojourn._util.public import public
from sojourn._util.reading import bytes_of_file, text_of
from sojourn.engines.warm import TIME, WarmFrom, warm_state
from sojourn.result import folders
from sojourn.scenario import describe, named
from sojourn.scenario.advice import warn
from sojourn.scenario.draft import Described, Draft, Table, canonical
from sojourn.scenario.parsing import parse_file, parse_toml
from sojourn.sweeps import estimates
from sojourn.sweeps.axes import Label, points, read_axes
from sojourn.sweeps.columns import Standard, read_metrics
from sojourn.sweeps.failures import COLUMNS as FAILURE_COLUMNS
from sojourn.sweeps.notes import write_note
from sojourn.sweeps.remote import local
from sojourn.sweeps.rounds import LEAST, Sweep, Until, run_rounds
from sojourn.sweeps.runner import CODE, RUN_COLUMNS, CampaignResult
from sojourn.sweeps.shards import Shard, read_shard
from sojourn.sweeps.store import Store

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

KEYS = ("scenario", "axes", "together", "skip", "seeds", "metrics", "link", "until", "warm_from")
"""Keys of a sweep file."""

UNTIL = ("metrics", "relative", "least", "most")
"""Keys of `until`."""

SEEDS_MAX = 1_000_000
"""Largest number of seeds at a point."""

SEED_MAX = 2**53
"""Largest seed, as in Rust."""


def read_sweep(
    path: str | Path, *, trust: bool = False, warm_from: str | Path | None = None
) -> Sweep:
    """Read and validate a sweep file (.toml) without running it.

    With `trust`, Python code that it and its scenario name may run. `warm_from` replaces the key of
    the file. Raises InputError with the name of the file and the path of an invalid value.
    """
    path = Path(path)
    text = text_of(path, bytes_of_file(path))
    tree = parse_file(path, text, parse_toml, trust=trust)
    try:
        for key in tree:
            if key not in KEYS:
                raise InputError(f"unknown key {shown(key)}{near(key, KEYS)}")
        if "scenario" not in tree:
            raise InputError('scenario: is missing; give one, like scenario = "uplink.toml"')
        base = _base(path, tree.pop("scenario"), trust)
        own = tree.get("warm_from")
        if isinstance(own, str) and not TIME.fullmatch(own):
            tree["warm_from"] = path.parent / own
        if warm_from is not None:
            tree["warm_from"] = warm_from
        tree["trust"] = trust
        return make_sweep(base, **tree)
    except InputError as error:
        text = str(error)
        message = text if text.startswith(f"{path}: ") else f"{path}: {text}"
        raise InputError(printable(message)) from None


def _base(path: Path, scenario: Any, trust: bool) -> Draft:
    """Return the valid scenario of a sweep file: a table, or a path relative to the file."""
    if not isinstance(scenario, str | Mapping):
        raise InputError(f"scenario: {shown(scenario)} is not a scenario file, nor a table")
    if isinstance(scenario, str):
        is_name = named.is_name(scenario) and not (path.parent / scenario).exists()
        return Draft.read(scenario if is_name else path.parent / scenario, trust=trust)
    draft = Draft.read(scenario, folder=path.parent)
    try:
        draft.parse()
    except InputError as error:
        dot = ": " if str(error).startswith("unknown key") else "."
        raise InputError(f"scenario{dot}{error}") from None
    return draft


def make_sweep(
    scenario: Described,
    axes: Mapping[str, Any] = {},
    *,
    seeds: int | Sequence[int] = 1,
    together: Sequence[Sequence[str]] = (),
    skip: Sequence[Mapping[str, Any]] = (),
    metrics: Sequence[Any] = (),
    link: str | None = None,
    until: Mapping[str, Any] | None = None,
    trust: bool = False,
    warm_from: WarmFrom | None = None,
) -> Sweep:
    """Return a validated sweep. `sweep` has the same parameters.

    Raises InputError if a scenario is invalid at any point, or cannot be measured there.
    """
    draft = Draft.read(scenario, trust=trust)
    read = read_axes(axes)
    if link is not None and not isinstance(link, str):
        raise InputError(f"link: {shown(link)} is not the name of a link")
    own = draft.parse()
    state = None if warm_from is None else warm_state(warm_from, trust=trust, base=own)
    base = canonical(own if state is None else own.warm_from(state))
    if state is not None:  # also with its own seed, so that a store has no other runs
        base |= {"warm_from": {"at": state.at, "seed": state.seed}}
    measure = Standard(compared_link(base, link), read_metrics(metrics))
    seed_list = _seeds(seeds, base["seed"], until is not None)
    rule = None if until is None else _until(until)
    parsed = [
        (labels, _parse_at(labels, tree, state))
        for labels, tree in points(draft.tree, read, together, skip)
    ]
    plan = Sweep(base, [axis.name for axis in read], parsed, seed_list, measure, rule)
    return replace(plan, examples=_check(plan))


def _parse_at(labels: Mapping[str, Label], tree: Table, state: WarmState | None) -> ParsedScenario:
    """Parse the scenario of a point; a message also has the labels of the point."""
    with _at(labels):
        parsed = Draft.read(tree).parse()
        return parsed if state is None else parsed.warm_from(state)


@contextmanager
def _at(labels: Mapping[str, Label]) -> Iterator[None]:
    """End messages of InputError with the labels of a point."""
    try:
        yield
    except InputError as error:
        at = ", ".join(f"{name} = {shown(label)}" for name, label in list(labels.items())[:4])
        raise InputError(f"{error} (at {at})") from None


def _check(spec: Sweep) -> list[Table]:
    """Raise InputError if the sweep would fail at some point, before any run.

    Returns canonical scenarios of points that together have every value of every axis.
    """
    if not spec.points:
        raise InputError("skip: no point is left to run")
    unset: dict[str, str] = {}
    anywhere: set[str] = set()
    everywhere: set[str] | None = None
    seen: set[tuple[str, Any]] = set()
    examples: list[Table] = []
    for n, (labels, parsed) in enumerate(spec.points):
        checked = canonical(parsed)
        with _at(labels):
            missing = dict(spec.measure.missing(checked))
        if not seen.issuperset(labels.items()):
            seen.update(labels.items())
            examples.append(checked)
        # The link or group of a metric must exist at some point; elsewhere there is no value.
        unset = missing if n == 0 else {k: v for k, v in unset.items() if k in missing}
        columns = set(spec.measure.columns(checked))
        anywhere |= columns
        everywhere = columns if everywhere is None else everywhere & columns
    for place, message in unset.items():
        raise InputError(f"{place}: {message}")
    for name in spec.names:
        if name in anywhere or name in (*RUN_COLUMNS, CODE, *FAILURE_COLUMNS):
            advice = "rename the axis, and give its path as set"
            raise InputError(f"axes.{brief(name)}: is the name of a column of results: {advice}")
    for n, name in enumerate(spec.until.metrics if spec.until else ()):
        if everywhere is not None and name not in everywhere:
            fault = f"no column {shown(name)}" if name not in anywhere else "not at every point"
            raise InputError(f"until.metrics.{n}: {fault}{near(name, sorted(everywhere))}")
        if not estimates.may_have_interval(name):
            raise InputError(f"until.metrics.{n}: {shown(name)} has no interval")
    return examples


@public
def sweep(
    scenario: Described,
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
    trust: bool = False,
    shard: str | None = None,
    warm_from: WarmFrom | None = None,
) -> "pl.DataFrame":
    """Run a scenario at every combination of axes and seeds.

    Sources draw the same random numbers at every point with the same seed, so differences between
    points are paired by seed.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario, the path of a .toml or .json file, or a name like "rrul".
    axes : mapping
        Values by axis, like ``{"bottleneck.qdisc": ["codel", sj.Pie()]}``. An axis is a list, or a
        table with `values` or a range; `sojourn.sweeps.axes` describes them.
    seeds : int or sequence of int, optional
        Number of seeds, counted up from the seed of the scenario, or the seeds themselves.
    together : sequence of sequences of str, optional
        Axes that vary in step.
    skip : sequence of mappings, optional
        Combinations of labels to omit, like ``[{"qdisc": "red", "load": 2}]``.
    metrics : sequence, optional
        Further columns: names of metrics (`sojourn list metrics`), or mappings with the `name` and
        the arguments of one.
    link : str, optional
        The link whose columns have no prefix. The default is the same as in `compare`.
    until : mapping, optional
        Stopping rule in place of `seeds`: ``{"metrics": ["sojourn_p99_s"], "relative": 0.05,
        "least": 20, "most": 100}`` adds seeds until half the 95 % interval of these columns is at
        most 5 % of the value, at every point. `least` is 20 or more.
    out : str or Path, optional
        Directory in which each run is stored when it completes. A run that is already there is not
        repeated. A URL like "s3://bucket/load" is possible, if fsspec can write to it.
    executor : concurrent.futures.Executor, optional
        Executor for the runs. The default is threads of this process.
    jobs : int, optional
        Number of threads. The default is the number of cores.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.
    force : bool, optional
        True replaces the runs of another scenario in `out`.
    trust : bool, optional
        True if Python code that the file of the scenario names may run. The default refuses it.
    shard : str, optional
        Part of the runs, like "3/16": every 16th run from the third on, or with `until` every 16th
        point. `sojourn sweep collect` merges the folders of the shards.
    warm_from : str, Path or Simulation, optional
        Warm state from which all runs start, as in `simulate`: a file of `Simulation.save`, a
        simulation, or a time like "30s", up to which the scenario is simulated once. Axes can set
        rates, delays, impairments and parameters of disciplines. Seeds other than the state's share
        the past of the state and have other random numbers from then on.

    Returns
    -------
    polars.DataFrame
        One row per run: the labels, `seed`, the values of `link` (`utilisation`, `sojourn_p99_s`,
        ...), of other links (`LINK.name`) and groups of flows (`GROUP.name`), and the metrics.

    Raises
    ------
    InputError
        If an argument is invalid, the scenario is invalid at some point, or `out` holds other
        files. The message begins with the path of the value.
    RunError
        If runs failed, after all others are done. `partial` is the table of the others. The next
        call with the same `out` repeats only the failed runs.

    Warns
    -----
    ScenarioWarning
        If a scenario is valid but probably not what was intended.

    Examples
    --------
    >>> import sojourn as sj
    >>> uplink = {
    ...     "duration": "2s",
    ...     "links": {"up": {"rate": "2mbit"}},
    ...     "flows": [{"name": "f", "path": ["up"], "source": sj.Bulk(start="uniform(0s, 1s)")}],
    ... }
    >>> rows = sj.sweep(uplink, {"up.qdisc": ["codel", "pie"]}, seeds=2)
    >>> rows.select("up.qdisc", "seed").rows()
    [('codel', 1), ('codel', 2), ('pie', 1), ('pie', 2)]
    """
    import polars as pl

    spec = make_sweep(
        scenario,
        axes,
        seeds=seeds,
        together=together,
        skip=skip,
        metrics=metrics,
        link=link,
        until=until,
        trust=trust,
        warm_from=warm_from,
    )
    part = None if shard is None else read_shard(shard)
    with nullcontext() if out is None else local(out, writes=True) as folder:
        outcome = run_sweep(
            spec,
            out=folder,
            executor=executor,
            jobs=jobs,
            progress=progress,
            force=force,
            shard=part,
        )
        table = pl.DataFrame(outcome.rows, infer_schema_length=None)
        if (error := outcome.error(table)) is not None:
            raise error
    return table


def run_sweep(
    spec: Sweep,
    *,
    out: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
    force: bool = False,
    shard: Shard | None = None,
) -> CampaignResult:
    """Run a validated sweep, or a shard of it, without the runs that `out` already has.

    The parameters are the same as of `sweep`. Raises InputError if `out` holds other files, unless
    `force` is True: the runs of another scenario are then replaced.
    """
    if out is None:
        warn(spec.examples)
        return run_rounds(spec, None, executor, jobs, progress, shard)
    identity = folders.identity_of(spec.base)
    is_other = folders.claim(Path(out), "sweep", identity, force=force)
    warn(spec.examples)
    store = Store(out)
    with store.writing():
        if is_other:
            store.clear()
        _note(store.directory, spec)
        return run_rounds(spec, store, executor, jobs, progress, shard)


def _note(directory: Path, spec: Sweep) -> None:
    """Write the scenario, axes and seeds to a file in the store."""
    write_note(
        directory,
        scenario=spec.base,
        axes={
            name: list(dict.fromkeys(labels[name] for labels, _ in spec.points))
            for name in spec.names
        },
        varied=describe.varied(spec.base, spec.examples),
        seeds=None if spec.until else [min(spec.seeds), max(spec.seeds)],
        until=None if spec.until is None else asdict(spec.until),
        measured=spec.measure.identity,
    )


def _seeds(value: Any, first: int, adaptive: bool) -> Sequence[int]:
    """Return the seeds of a sweep; with `until` (`adaptive`), only the first one is used."""
    if adaptive and value != 1:
        advice = "until adds seeds itself (from least to most): omit seeds"
        raise InputError(f"seeds: {shown(value)} cannot be combined with until; {advice}")
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= SEEDS_MAX:
            raise InputError(f"seeds: {shown(value)} is out of range, allowed: 1 to {SEEDS_MAX}")
        if first + value - 1 > SEED_MAX:
            raise InputError(f"seeds: {value} seeds from {first} on exceed {SEED_MAX}")
        return range(first, first + value)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise InputError(f"seeds: {shown(value)} is not a number of seeds, nor a list of them")
    for n, seed in enumerate(value):
        if type(seed) is not int or not 0 <= seed <= SEED_MAX:
            allowed = f"allowed: whole numbers from 0 to {SEED_MAX}"
            raise InputError(f"seeds.{n}: {shown(seed)} is not a seed, {allowed}")
    if len(set(value)) < len(value):
        raise InputError("seeds: a seed is given twice")
    return list(value)


def _until(table: Any) -> Until:
    if not isinstance(table, Mapping):
        raise InputError(f"until: {shown(table)} is not a table")
    for key in table:
        if key not in UNTIL:
            raise InputError(f"until: unknown key {shown(key)}{near(key, UNTIL)}")
    names, relative = table.get("metrics"), table.get("relative")
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise InputError('until.metrics: requires a list of columns, like ["sojourn_p99_s"]')
    for n, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"until.metrics.{n}: {shown(name)} is not the name of a column")
    if isinstance(relative, bool) or not isinstance(relative, int | float) or not 0 < relative < 1:
        message = f"{shown(relative)} is out of range, allowed: between 0 and 1"
        raise InputError(f"until.relative: {message}")
    least, most = table.get("least", Until.least), table.get("most", Until.most)
    if type(least) is not int or type(most) is not int or not LEAST <= least <= most <= SEEDS_MAX:
        allowed = f"allowed: {LEAST} <= least <= most <= {SEEDS_MAX}"
        raise InputError(f"until: least {shown(least)} and most {shown(most)}; {allowed}")
    return Until(tuple(names), float(relative), least, most)
