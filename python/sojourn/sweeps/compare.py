"""The same scenario under several disciplines: only one link's discipline differs."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.files import naming, replacing
from sojourn._util.html import html
from sojourn._util.inputs import shown
from sojourn._util.units import counted, seconds
from sojourn.engines.simulate import run_texts
from sojourn.result import folders
from sojourn.result.result import Result
from sojourn.scenario import variants
from sojourn.scenario.advice import warn
from sojourn.scenario.load import Scenario, Table, load, plain, to_json
from sojourn.scenario.overrides import compared_link, set_seed, with_qdisc
from sojourn.scenario.variants import Variants

if TYPE_CHECKING:
    import polars as pl

SEEDS_MAX = 10_000
"""The most seeds of a comparison: more is a campaign, and its results would not fit into memory."""

FOLDER_MAX = 80
"""The most characters of a label that name its folders."""

INDEX = "comparison.json"
"""The file that says which run is in which folder."""


class Comparison(dict[str, list[Result]]):
    """Results by label: for each discipline a list, a Result for each seed.

    `link` is the name of the link whose discipline differs.
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

    def _repr_html_(self) -> str | None:
        """Return the table of the comparison as a notebook shows it."""
        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Comparison, (dict(self), self.link)

    def frame(self) -> "pl.DataFrame":
        """Return a polars frame with a row for each run, as `sojourn.results` reads it."""
        from sojourn.sweeps.rows import arranged, row_of

        rows = [
            row_of(result, self.link, {"qdisc": label})
            for label, results in self.items()
            for result in results
        ]
        return arranged(rows)

    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write each run into a folder of its own in `directory`, and an index beside them.

        A folder that holds something else than a comparison of the same scenario is refused
        (InputError), unless `force`; even then only names that are written here are replaced.
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


def compare(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    qdiscs: Variants,
    *,
    link: str | None = None,
    seeds: int = 1,
    progress: bool = False,
    command: Sequence[str] = (),
    out: str | Path | None = None,
    force: bool = False,
) -> Comparison:
    """Run `scenario` under each of `qdiscs` and return the results: a list over seeds, by label.

    A discipline is a name, `"codel(target=15ms)"`, a table with a name, or a model such as
    `sj.CoDel(target="15ms")`. Its label is the shortest text that tells it from the others; a
    mapping gives labels of your own, `{"slow": sj.CoDel(target="100ms")}`, and so does
    `"slow=codel(target=100ms)"`.

    The discipline replaces that of `link` (default: the one called bottleneck, else the first
    that the first flow crosses). It keeps the buffer, unless it has a `limit` of its own; a name
    without parameters that the link already has keeps all of its parameters. The seeds count up
    from the scenario's. Sources draw the same random numbers under every discipline, so
    differences are paired.

    With `out`, each run is written into a folder there as soon as it is over, and one that is
    there already (the same scenario, by the same version) is read instead of run, so an interrupt
    loses nothing. A folder that holds something else is refused, unless `force`.

    Raises InputError for a bad scenario or discipline.
    """
    if not 1 <= seeds <= SEEDS_MAX:
        raise InputError(f"--seeds: {seeds} is out of range, allowed: 1 to {SEEDS_MAX}")
    tree = plain(load(scenario) if isinstance(scenario, str | Path) else scenario)
    where = compared_link(tree, link)
    own = _canonical(tree)
    checked = _checked(tree, own, where, qdiscs)
    warn(checked.values())
    runs = {
        (label, seed): set_seed(one, seed)
        for label, one in checked.items()
        for seed in range(own["seed"], own["seed"] + seeds)
    }
    if out is None:
        results = _run(list(runs.values()), progress=progress, command=command)
    else:
        kept = _Folder(Path(out), own, where, force=force)
        results = kept.results(runs, progress=progress, command=command)
    by_label = {label: results[k * seeds : (k + 1) * seeds] for k, label in enumerate(checked)}
    return Comparison(by_label, where)


def load_comparison(directory: str | Path, *, series: bool = True) -> Comparison:
    """Read what `compare(..., out=directory)` or `Comparison.save` wrote.

    Runs that are missing, since it was interrupted, are left out and counted on standard error.
    With `series` false, series and packet logs are not read. Raises InputError if there is none.
    """
    from sojourn.result.io import load_result

    directory = Path(directory)
    index = _index(directory)
    if not index:
        raise InputError(f"{directory}: there is no comparison ({INDEX})")
    runs: dict[str, list[Result]] = {}
    missing = 0
    for label, one in index["variants"].items():
        places = [directory / f"{one['folder']}-{seed}" for seed in one["seeds"]]
        there = [place for place in places if (place / "summary.json").exists()]
        missing += len(places) - len(there)
        if there:
            runs[label] = [load_result(place, series=series) for place in there]
    if not runs:
        raise InputError(f"{directory}: no run of the comparison is finished")
    if missing:
        told = f"{counted(missing, 'run')} of the comparison not finished"
        print(f"sojourn: {directory}: {told}", file=sys.stderr)
    return Comparison(runs, index["link"])


class _Folder:
    """The folder of a comparison: which run is where. It is claimed when this is made."""

    def __init__(self, directory: Path, scenario: Table, link: str, *, force: bool) -> None:
        identity = folders.identity_of_comparison(scenario, link)
        replaces = folders.claim(directory, "comparison", identity, force=force)
        self.directory = directory
        self._force = force
        self._link = link
        self._scenario = scenario
        self._variants: dict[str, Table] = {} if replaces else _index(directory).get("variants", {})

    def prepare(self, runs: Mapping[tuple[str, int], Table]) -> None:
        """Claim a folder for each of `runs` (by label and seed), and write the index.

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
        with replacing(self.directory / INDEX) as part:
            part.write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")

    def place(self, label: str, seed: int) -> Path:
        """Return the folder of a run."""
        return self.directory / f"{self._variants[label]['folder']}-{seed}"

    def results(
        self, runs: Mapping[tuple[str, int], Table], *, progress: bool, command: Sequence[str]
    ) -> list[Result]:
        """Return the results of `runs`: read from their folders, or made and written there."""
        from sojourn.result.io import load_result, same_run

        runs = {place: _canonical(run) for place, run in runs.items()}
        self.prepare(runs)
        places = [self.place(*place) for place in runs]
        scenarios = list(runs.values())
        missing = [i for i, run in enumerate(scenarios) if not same_run(places[i], run)]

        def finished(k: int, result: Result) -> None:
            result.save(places[missing[k]], force=self._force)

        todo = [scenarios[i] for i in missing]
        fresh = _run(todo, progress=progress, command=command, finished=finished)
        new = dict(zip(missing, fresh, strict=True))
        return [new[i] if i in new else load_result(places[i]) for i in range(len(places))]

    def _free_name(self, label: str) -> str:
        """Make a name for folders out of a label, which can hold anything."""
        plain_name = re.sub(r"[^\w.+=-]+", "_", label, flags=re.ASCII)[:FOLDER_MAX]
        name = plain_name.strip("_.") or "variant"
        taken = {one["folder"] for one in self._variants.values()}
        several = (f"{name}_{k}" if k else name for k in range(len(taken) + 1))
        return next(one for one in several if one not in taken)


def _checked(tree: Table, own: Table, where: str, given: Variants) -> dict[str, Table]:
    """Return the canonical scenario of each variant, by label."""
    try:
        found = variants.variants(given)
    except InputError as error:
        raise InputError(f"--qdisc: {error}") from None
    names, scenarios = [], []
    for _, one in found:
        checked = _canonical(with_qdisc(tree, one, where))
        name = checked["links"][where]["qdisc"]["name"]
        if len(one) == 1 and name == own["links"][where]["qdisc"]["name"]:
            # The discipline that the scenario has already keeps all of its parameters.
            checked = own
        names.append({**one, "name": name})
        scenarios.append(checked)
    by_label: dict[str, Table] = {}
    automatic = variants.labels(names)
    for (label, _), usual, checked in zip(found, automatic, scenarios, strict=True):
        name = label or usual
        if name in by_label:
            raise InputError(f"--qdisc: {shown(name)} is there twice")
        same = next((known for known, one in by_label.items() if one == checked), None)
        if same is not None and label is None:
            raise InputError(f"--qdisc: {shown(name)} is the same as {shown(same)}")
        by_label[name] = checked
    return by_label


def _run(
    scenarios: Sequence[Table],
    *,
    progress: bool,
    command: Sequence[str],
    finished: Callable[[int, Result], object] | None = None,
) -> list[Result]:
    """Run canonical scenarios."""
    texts = [to_json(scenario) for scenario in scenarios]
    lasting = [seconds(scenario["duration"]) for scenario in scenarios]
    return run_texts(texts, lasting, progress, command, finished=finished)


def _index(directory: Path) -> Table:
    """Read the index of a comparison; empty if there is none. Raises InputError if it is bad."""
    if folders.kind_of(directory) != "comparison":
        return {}
    try:
        index: Table = json.loads((directory / INDEX).read_text(encoding="utf-8"))
        for one in index["variants"].values():
            is_name = re.fullmatch(r"[\w+=-][\w.+=-]*", one["folder"])
            if not is_name or not all(type(seed) is int for seed in one["seeds"]):
                raise ValueError(f"{one} is no variant")
        if index["link"] not in index["scenario"]["links"]:
            raise ValueError("the link is unknown")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{directory / INDEX}: not an index of a comparison: {error}") from None
    return index


def _canonical(tree: Table) -> Table:
    checked: Table = json.loads(_sojourn.canonical(to_json(tree)))
    return checked
