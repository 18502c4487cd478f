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
) -> dict[str, list[Result]]:
    """Run `scenario` under each of `qdiscs` and give the results, a list over seeds, by name.

    The discipline replaces that of `link` (default: the one called bottleneck, else the first
    that the first flow crosses) and keeps its buffer. The seeds count up from the scenario's.
    Sources draw the same numbers under every discipline, so that differences are paired.
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
    results = simulate_many(runs, progress=progress, command=command)
    return {name: results[k * seeds : (k + 1) * seeds] for k, name in enumerate(canonical)}


def _canonical(tree: Table) -> Table:
    checked: Table = json.loads(_sojourn.canonical(to_json(tree)))
    return checked
