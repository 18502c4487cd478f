"""The same scenario under several disciplines: only one link's discipline differs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.result import Result
from sojourn.run import simulate_many
from sojourn.scenario import Scenario, Table, load, plain, to_json
from sojourn.settings import compared_link, set_seed, with_qdisc

SEEDS_MAX = 10_000
"""The most seeds of a comparison: more is a campaign, and its results would not fit into memory."""


def compare(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    qdiscs: Sequence[str],
    *,
    link: str | None = None,
    seeds: int = 1,
    progress: bool = False,
    command: Sequence[str] = (),
    out: str | Path | None = None,
) -> dict[str, list[Result]]:
    """Run `scenario` under each of `qdiscs` and give the results, a list over seeds, by name.

    The discipline replaces that of `link` (default: the one called bottleneck, else the first
    that the first flow crosses) and keeps its buffer. The seeds count up from the scenario's.
    Sources draw the same numbers under every discipline, so that differences are paired.

    With `out`, each run is written into a directory NAME-SEED there as soon as it is over, and one
    that is there already (the same scenario, by the same version) is read instead of run: what an
    interrupt leaves is not lost.
    """
    tree = plain(load(scenario) if isinstance(scenario, str | Path) else scenario)
    where = compared_link(tree, link)
    own = _canonical(tree)
    canonical: dict[str, Table] = {}
    for name in qdiscs:
        checked = _canonical(with_qdisc(tree, name, where))
        known = checked["links"][where]["qdisc"]["name"]
        if known in canonical:
            raise InputError(f'--qdisc: "{known}" is there twice')
        # The discipline that the scenario has already keeps its parameters, not only its buffer.
        canonical[known] = own if known == own["links"][where]["qdisc"]["name"] else checked
    runs = [
        set_seed(checked, checked["seed"] + i)
        for checked in canonical.values()
        for i in range(seeds)
    ]
    if out is None:
        results = simulate_many(runs, progress=progress, command=command)
    else:
        names = [f"{name}-{own['seed'] + i}" for name in canonical for i in range(seeds)]
        places = [Path(out) / name for name in names]
        results = _kept(runs, places, progress=progress, command=command)
    return {name: results[k * seeds : (k + 1) * seeds] for k, name in enumerate(canonical)}


def _kept(
    runs: Sequence[Table], places: Sequence[Path], *, progress: bool, command: Sequence[str]
) -> list[Result]:
    """Give the results of `runs`: those that are in their `places`, and those that are not yet."""
    from sojourn.stored import load_result, same_run

    runs = [_canonical(run) for run in runs]
    missing = [i for i, run in enumerate(runs) if not same_run(places[i], run)]

    def finished(k: int, result: Result) -> None:
        result.save(places[missing[k]])

    todo = [runs[i] for i in missing]
    fresh = simulate_many(todo, progress=progress, command=command, finished=finished)
    new = dict(zip(missing, fresh, strict=True))
    return [new[i] if i in new else load_result(places[i]) for i in range(len(runs))]


def _canonical(tree: Table) -> Table:
    checked: Table = json.loads(_sojourn.canonical(to_json(tree)))
    return checked
