"""Comparisons: run one scenario under several disciplines of one link."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sojourn import _sojourn
from sojourn._sojourn import InputError, ParsedScenario, WarmState
from sojourn._util.files import naming, write_text
from sojourn._util.html import html
from sojourn._util.inputs import shown
from sojourn._util.lazy import Lazy
from sojourn._util.look import Look
from sojourn._util.paths import matching_links
from sojourn._util.public import public
from sojourn._util.units import counted, seconds
from sojourn.engines.simulate import run_parsed
from sojourn.engines.warm import WarmFrom, warm_state
from sojourn.result import folders
from sojourn.result.result import Result
from sojourn.scenario import named, variants
from sojourn.scenario.advice import warn, warn_of_equal_seeds, warn_of_other_links
from sojourn.scenario.draft import Described, Draft, Table, canonical
from sojourn.scenario.variants import Variants
from sojourn.sweeps.comparison_index import INDEX, folders_of, read_index
from sojourn.sweeps.failures import Failure, error_of, fault_of

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    import polars as pl
else:
    mpl, pl = Lazy("matplotlib.figure"), Lazy("polars")

SEEDS_MAX = 10_000
"""Largest number of seeds of a comparison, whose results stay in memory; use a sweep for more."""

FOLDER_MAX = 80
"""Longest part of a label in the name of a folder, in characters."""


@public
class Comparison(dict[str, list[Result]]):
    """Results by label of the discipline, each a list with one Result per seed.

    Attributes
    ----------
    link : str
        Name of the link whose discipline differs.
    scenario : dict
        The canonical scenario of the first run.
    """

    def __init__(self, runs: Mapping[str, Sequence[Result]], link: str) -> None:
        super().__init__({label: list(results) for label, results in runs.items()})
        self.link = link

    @property
    def scenario(self) -> Table:
        """The canonical scenario of the first run."""
        return next(iter(self.values()))[0].scenario

    def __repr__(self) -> str:
        seeds = counted(max(map(len, self.values()), default=0), "seed")
        name = f"{self.scenario['name']}, " if self else ""
        return f"Comparison({name}{self.link}: {', '.join(self)}; {seeds})"

    def __str__(self) -> str:
        """Return the table that `sojourn compare` prints."""
        if not self:
            return repr(self)
        # By name: tables are defined in terms of comparisons.
        summary = import_module("sojourn.display.summary")
        return str(summary.comparison_text(self, self.link))

    def _repr_html_(self) -> str | None:
        """Return the table of the comparison as HTML for notebooks."""
        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Comparison, (dict(self), self.link)

    def frame(self) -> "pl.DataFrame":
        """Return a polars frame with one row per run, in the format of `sojourn.results`.

        The column `qdisc` has the label, `seed` the seed. See `sojourn.sweep` for the others.
        """
        from sojourn.sweeps.rows import arranged, row_of

        rows = [
            row_of(result, self.link, {"qdisc": label})
            for label, results in self.items()
            for result in results
        ]
        return arranged(rows)

    def plot(self, path: str | Path | None = None, **look: Unpack[Look]) -> "mpl.Figure":
        """Draw the delays over time, and a panel per group of flows. See `draw_comparison`.

        Parameters
        ----------
        path : str or Path, optional
            File to write, .png, .pdf or .svg.
        **look : optional
            Options `title`, `size` and `style` of the figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        InputError
            If an option is invalid, or the file cannot be written.
        """
        # By name: figures are defined in terms of comparisons.
        drawing = import_module("sojourn.plotting.comparison")
        figure: mpl.Figure = drawing.draw_comparison(self, path, **look)
        return figure

    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write each run to a subfolder of `directory`, and an index of them.

        `load_comparison` reads the files.

        Parameters
        ----------
        directory : str or Path
            The directory; it is created if needed.
        force : bool, optional
            True replaces the files of other results. Files with other names are never touched.

        Raises
        ------
        InputError
            If the directory cannot be written, or holds anything but a comparison of the same
            scenario and `force` is False.
        """
        kept = _Folder(Path(directory), self.scenario, self.link, force=force)
        every = {
            (label, result.scenario["seed"]): result
            for label, results in self.items()
            for result in results
        }
        kept.prepare({place: result.scenario for place, result in every.items()})
        for (label, seed), result in every.items():
            result.save(kept.place(label, seed), force=force)


@public
def compare(
    scenario: Described,
    qdiscs: Variants,
    *,
    link: str | None = None,
    also: Sequence[str] = (),
    seeds: int = 1,
    progress: bool = False,
    command: Sequence[str] = (),
    out: str | Path | None = None,
    force: bool = False,
    trust: bool = False,
    warm_from: WarmFrom | None = None,
) -> Comparison:
    """Run a scenario under several disciplines of one link.

    Each discipline keeps the buffer of the scenario unless it has its own `limit`. A name without
    parameters that equals the discipline of the scenario keeps all of its parameters. Traffic
    sources draw the same random numbers under every discipline, so differences are paired by seed.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario, the path of a .toml or .json file, or a name like "rrul".
    qdiscs : str, Qdisc, sequence or mapping
        The disciplines: a list, a comma-separated string, or a mapping from labels. Each is a
        name, a call like ``"codel(target=15ms)"``, a mapping with a `name`, or a model like
        ``sj.CoDel(target="15ms")``. ``"slow=codel(target=100ms)"`` also sets a label. The default
        label is the shortest text that is unique in the comparison.
    link : str, optional
        The link. The default is the link called bottleneck, otherwise the first link on the path
        of the first flow. ``"s*-h*"`` is all links whose names match; "*" stands for any letters.
    also : sequence of str, optional
        Further links that get the same discipline. The default of a named scenario is all of its
        links under test.
    seeds : int, optional
        Number of seeds, counted up from the seed of the scenario; 1 to 10000.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.
    command : sequence of str, optional
        Command line to record in the files of the results.
    out : str or Path, optional
        Directory in which each run is saved as soon as it completes. A run that is already there,
        of the same scenario and version, is read instead of run again.
    force : bool, optional
        True replaces other results in `out`.
    trust : bool, optional
        True if Python code that the file of the scenario names may run. The default refuses it.
    warm_from : str, Path or Simulation, optional
        Warm state from which all runs start, as in `sweep`. The disciplines must then be the one of
        the state with other parameters: what is queued in a discipline has no place in another.

    Returns
    -------
    Comparison
        The results by label, one per seed.

    Raises
    ------
    InputError
        If the scenario or a discipline is invalid, if `out` holds other files, or if the runs
        cannot start from the warm state.
    RunError
        If runs failed, after all others are done. `partial` is the comparison of the others.

    Warns
    -----
    ScenarioWarning
        If the scenario is valid but probably not what was intended.

    Examples
    --------
    >>> import sojourn as sj
    >>> uplink = {
    ...     "duration": "2s",
    ...     "links": {"up": {"rate": "2mbit"}},
    ...     "flows": [{"name": "bulk", "path": ["up"], "rtt": "20ms"}],
    ... }
    >>> runs = sj.compare(uplink, ["droptail", "codel"])
    >>> delay_s = {name: results[0].links["up"].sojourn_p99_s for name, results in runs.items()}
    >>> delay_s["codel"] < delay_s["droptail"]
    True
    """
    if not 1 <= seeds <= SEEDS_MAX:
        raise InputError(f"--seeds: {seeds} is out of range, allowed: 1 to {SEEDS_MAX}")
    draft = Draft.read(scenario, trust=trust)
    parsed = draft.parse()
    own = canonical(parsed)
    also = tuple(also)
    if link is None and not also and (known := named.links_of(draft.path)):
        link, *also = known
    where, *others = matching_links(own, link)
    if link is None:
        warn_of_other_links(own, where)
    others += [name for one in also for name in matching_links(own, one)]
    also = tuple(name for name in dict.fromkeys(others) if name != where)
    several = _variants(draft, parsed, (where, *also), qdiscs)
    if warm_from is not None:
        state = warm_state(warm_from, trust=trust, base=parsed)
        several = {label: _warmed(label, one, state) for label, one in several.items()}
        own |= {"warm_from": {"at": state.at, "seed": state.seed}}
    warn(canonical(one) for one in several.values())
    runs = {
        (label, seed): one.with_seed(seed)
        for label, one in several.items()
        for seed in range(own["seed"], own["seed"] + seeds)
    }
    folder = None
    if out is not None:
        folder = _Folder(Path(out), _without(own, also), where, force=force)
    results, failures = _execute(runs, folder, progress, command)
    by_label: dict[str, list[Result]] = {}
    for (label, _), result in results.items():
        by_label.setdefault(label, []).append(result)
    warn_of_equal_seeds(
        {
            label: [(result.links, result.flows) for result in results]
            for label, results in by_label.items()
        },
        warm=warm_from is not None,
    )
    comparison = Comparison(by_label, where)
    if failures:
        raise error_of(failures, len(runs), out, comparison)
    return comparison


def _warmed(label: str, parsed: ParsedScenario, state: WarmState) -> ParsedScenario:
    """Return the scenario of a discipline that starts from a warm state."""
    try:
        return parsed.warm_from(state)
    except InputError as error:
        raise InputError(f"{error} (with {label})") from None


def _execute(
    scenarios: Mapping[tuple[str, int], ParsedScenario],
    folder: "_Folder | None",
    progress: bool,
    command: Sequence[str],
) -> tuple[dict[tuple[str, int], Result], list[Failure]]:
    """Execute the runs that `folder` does not have; return all results, and the failures."""
    runs = {place: canonical(one) for place, one in scenarios.items()}
    results = {} if folder is None else folder.finished(runs)
    todo = [place for place in runs if place not in results]
    failures: dict[int, Failure] = {}

    def finish(k: int, result: Result) -> None:
        if folder is not None:
            folder.save(todo[k], result)
        results[todo[k]] = result

    def fail(k: int, error: BaseException) -> None:
        label, seed = todo[k]
        failures[k] = Failure({"qdisc": label}, seed, *fault_of(error))

    lasting = [seconds(runs[place]["duration"]) for place in todo]
    parsed = [scenarios[place] for place in todo]
    run_parsed(parsed, lasting, progress, command, finished=finish, failed=fail)
    finished = {place: results[place] for place in runs if place in results}
    return finished, [failures[k] for k in sorted(failures)]


@public
def load_comparison(
    directory: str | Path, *, series: bool = True, trust: bool = False
) -> Comparison:
    """Read a comparison from the files of ``compare(..., out=directory)`` or `Comparison.save`.

    Unfinished runs of an interrupted comparison are omitted, with a note on standard error.

    Parameters
    ----------
    directory : str or Path
        The directory.
    series : bool, optional
        False skips the series and the packet logs, which can be large.
    trust : bool, optional
        True if Python code that the scenarios of the results name may run. The default refuses it.

    Returns
    -------
    Comparison
        The results by label, one per seed.

    Raises
    ------
    InputError
        If the directory has no comparison with a finished run, or a file is damaged.
    """
    from sojourn.result.io import load_result

    directory = Path(directory)
    index = read_index(directory)
    if not index:
        raise InputError(f"{directory}: there is no comparison ({INDEX})")
    runs: dict[str, list[Result]] = {}
    missing = 0
    for label, one in index["variants"].items():
        places = [directory / folder for folder in folders_of(one)]
        there = [place for place in places if (place / "summary.json").exists()]
        missing += len(places) - len(there)
        if there:
            runs[label] = [load_result(place, series=series, trust=trust) for place in there]
    if not runs:
        raise InputError(f"{directory}: no run of the comparison is finished")
    for label, results in runs.items():
        if any(index["link"] not in result.links for result in results):
            raise InputError(f"{directory / INDEX}: link: {shown(label)} has no such link")
    if missing:
        unfinished = f"{counted(missing, 'run')} of the comparison not finished"
        print(f"sojourn: {directory}: {unfinished}", file=sys.stderr)
    return Comparison(runs, index["link"])


class _Folder:
    """Folder of a comparison and its index. The constructor checks that it may be written."""

    def __init__(self, directory: Path, scenario: Table, link: str, *, force: bool) -> None:
        identity = folders.identity_of_comparison(scenario, link)
        replaces = folders.claim(directory, "comparison", identity, force=force)
        self.directory = directory
        self._force = force
        self._link = link
        self._scenario = scenario
        index = {} if replaces else read_index(directory)
        self._variants: dict[str, Table] = index.get("variants", {})

    def prepare(self, runs: Mapping[tuple[str, int], Table]) -> None:
        """Assign a subfolder to each of `runs` (by label and seed), and write the index.

        Runs of earlier comparisons stay in the index.
        """
        for (label, seed), run in runs.items():
            known = self._variants.get(label, {"folder": self._free_name(label), "seeds": []})
            seeds = sorted({*known["seeds"], seed})
            qdisc = run["links"][self._link]["qdisc"]
            self._variants[label] = {"qdisc": qdisc, "folder": known["folder"], "seeds": seeds}
            folders.claim_run(self.place(label, seed), run, force=self._force)
        with naming(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        index = {
            "sojourn": _sojourn.version(),
            "link": self._link,
            "scenario": self._scenario,
            "variants": self._variants,
        }
        write_text(self.directory / INDEX, json.dumps(index, indent=2) + "\n")

    def place(self, label: str, seed: int) -> Path:
        """Return the subfolder of a run."""
        return self.directory / f"{self._variants[label]['folder']}-{seed}"

    def finished(self, runs: Mapping[tuple[str, int], Table]) -> dict[tuple[str, int], Result]:
        """Prepare the subfolders of `runs`; return the results that are there."""
        from sojourn.result.io import load_result, same_run

        self.prepare(runs)
        there = [place for place, run in runs.items() if same_run(self.place(*place), run)]
        return {place: load_result(self.place(*place)) for place in there}

    def save(self, place: tuple[str, int], result: Result) -> None:
        """Save the result of a run in its subfolder."""
        result.save(self.place(*place), force=self._force)

    def _free_name(self, label: str) -> str:
        """Return an unused folder name for a label, which may contain any character."""
        plain_name = re.sub(r"[^\w.+=-]+", "_", label, flags=re.ASCII)[:FOLDER_MAX]
        name = plain_name.strip("_.") or "variant"
        taken = {one["folder"] for one in self._variants.values()}
        several = (f"{name}_{k}" if k else name for k in range(len(taken) + 1))
        return next(one for one in several if one not in taken)


def _without(scenario: Table, links: Sequence[str]) -> Table:
    """Return a canonical scenario without the disciplines of `links`, which vary as well."""
    kept = {
        name: {key: value for key, value in link.items() if key != "qdisc"}
        if name in links
        else link
        for name, link in scenario["links"].items()
    }
    return {**scenario, "links": kept}


def _variants(
    draft: Draft, own: ParsedScenario, links: Sequence[str], qdiscs: Variants
) -> dict[str, ParsedScenario]:
    """Return the scenario with each discipline on `links`, by label; `own` is `draft`, parsed."""
    try:
        tables = variants.variants(qdiscs)
    except InputError as error:
        raise InputError(f"--qdisc: {error}") from None
    own_name = _qdisc_name(own, links[0])
    names, scenarios = [], []
    for _, table in tables:
        parsed = draft.with_qdisc(table, *links).parse()
        name = _qdisc_name(parsed, links[0])
        names.append({**table, "name": name})
        # The same discipline without parameters: use the scenario as it is.
        scenarios.append(own if len(table) == 1 and name == own_name else parsed)
    by_label: dict[str, ParsedScenario] = {}
    for (label, _), usual, parsed in zip(tables, variants.labels(names), scenarios, strict=True):
        name = label or usual
        if name in by_label:
            raise InputError(f"--qdisc: {shown(name)} is given twice")
        text = parsed.canonical()
        same = next((known for known, one in by_label.items() if one.canonical() == text), None)
        if same is not None and (label is None or label.startswith("tc:")):
            raise InputError(f"--qdisc: {shown(name)} is the same as {shown(same)}")
        by_label[name] = parsed
    return by_label


def _qdisc_name(scenario: ParsedScenario, link: str) -> str:
    return str(canonical(scenario)["links"][link]["qdisc"]["name"])
