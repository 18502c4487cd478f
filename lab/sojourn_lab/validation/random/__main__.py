"""`make validate-random`: random scenarios with simulated TCP and the kernel's, compared.

Live runs need root. Without it, `--kernel` runs the scenarios in a kernel in user mode, and
`--replay` compares new simulations with the recorded runs.
"""

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sojourn.scenario.save import to_toml
from sojourn_lab import ROOT
from sojourn_lab.validation.linux.fresh.kernel import kernel
from sojourn_lab.validation.random import records, virtual
from sojourn_lab.validation.random.agreement import Row, rows
from sojourn_lab.validation.random.causes import causes
from sojourn_lab.validation.random.describe import describe, values
from sojourn_lab.validation.random.draw import NAMES, Scenario, draw, named
from sojourn_lab.validation.random.live import run_all
from sojourn_lab.validation.random.measure import Numbers
from sojourn_lab.validation.random.report import page, repetition, summary
from sojourn_lab.validation.random.simulate import simulate

PAGE = ROOT / "reports/validation-random.md"

Runs = list[tuple[Scenario, list[Numbers]]]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sojourn_lab.validation.random", description=__doc__)
    option = parser.add_argument
    option("--seed", default=datetime.date.today().isoformat(), help="of the draw (today's date)")
    option("--n", type=int, default=60, help="number of scenarios (60: 16 minutes)")
    option("--jobs", type=int, default=2, help="runs at once (2)")
    option("--lives", type=int, default=2, help="live runs of a scenario (2)")
    option("--again", type=int, default=0, help="further live runs of scenarios that differ (0)")
    option("--seeds", type=int, default=6, help="simulated runs of a scenario (6)")
    option(
        "--kernel",
        nargs="?",
        const="",
        metavar="PATH",
        help="run in a kernel in user mode, not live: this one, or one built from linux-source",
    )
    option("--record", type=Path, help="append live runs to this file, and use those in it")
    option("--replay", type=Path, nargs="?", const=records.RECORDED, help="only recorded live runs")
    option("--keep", action="store_true", help="keep the recordings in the repository")
    option("--only", default="", help="only scenarios whose names contain this")
    option("--toml", type=Path, help="write scenarios that differ to this directory")
    option("--out", type=Path, help=f"page to write ({PAGE.relative_to(ROOT)}; none for --replay)")
    return parser.parse_args()


def _live(
    options: argparse.Namespace, scenarios: Sequence[Scenario], seeds: Iterable[int]
) -> list[records.Record]:
    """Return recorded and new live runs with `seeds`, with a line of progress for each new one."""
    path: Path | None = options.record
    pairs = {(scenario["name"], seed): (scenario, seed) for seed in seeds for scenario in scenarios}
    known = records.read(path) if path and path.exists() else ()
    result = [r for r in known if pairs.pop((r["scenario"]["name"], r["seed"]), None)]
    wanted = list(pairs.values())
    if options.kernel is not None:
        binary = Path(options.kernel) if options.kernel else kernel(live=True)
        new = virtual.run_all(binary, wanted, options.jobs)
    elif wanted and os.geteuid():
        sys.exit("live runs need root; --kernel needs none, --replay compares with recorded ones")
    else:
        new = run_all(wanted, options.jobs)
    for count, record in enumerate(records.append(path, new) if path else new, 1):
        late = "" if record.get("punctual") else f": {record.get('error', 'late, not counted')}"
        print(f"live {count} of {len(wanted)}: {record['scenario']['name']}{late}", flush=True)
        if record.get("punctual"):
            result.append(record)
    return result


def _families(runs: Runs, seeds: int, jobs: int) -> tuple[dict[str, list[Row]], list[Row]]:
    """Return the comparison of each scenario, for each family of names.

    The second list has the presets compared without the live runs of scenarios that ran again.
    """
    result = {}
    before: list[Row] = []
    least = min(len(lives) for _, lives in runs)
    for title, names in NAMES.items():
        print(f"simulating {len(runs)} scenarios with {seeds} seeds: {title}", flush=True)
        scenarios = [named(scenario, names) for scenario, _ in runs]
        simulated = simulate(scenarios, seeds, jobs)
        result[title] = rows(runs, simulated)
        before = before or rows([(one, lives[:least]) for one, lives in runs], simulated)
    return result, before


def _write_scenarios(compared: Sequence[Row], folder: Path) -> None:
    """Write the scenarios that differ, with their values as a comment."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in compared:
        if row.differing:
            head = f"# {describe(row.scenario)}\n# live / simulated: {values(row)}\n"
            (folder / f"{row.scenario['name']}.toml").write_text(head + to_toml(row.scenario))


def main() -> None:
    """Draw, run, compare, and write the page."""
    options = _options()
    if options.replay:
        recorded = list(records.read(options.replay))
    else:
        drawn = [draw(options.seed, number) for number in range(options.n)]
        recorded = _live(options, drawn, range(1, options.lives + 1))
    runs = [run for run in records.runs(recorded) if options.only in run[0]["name"]]
    if not runs:
        sys.exit("no punctual live run")
    families, before = _families(runs, options.seeds, options.jobs)
    if options.again and not options.replay:
        differing = [row.scenario for row in families["presets"] if row.differing]
        further = range(options.lives + 1, options.lives + options.again + 1)
        recorded += _live(options, differing, further)
        runs = [run for run in records.runs(recorded) if options.only in run[0]["name"]]
        families, before = _families(runs, options.seeds, options.jobs)
    if options.keep:
        records.keep(recorded)
    print(summary(families))
    if options.toml:
        _write_scenarios(families["presets"], options.toml)
    out = options.out or (None if options.replay else PAGE)
    if out:
        lives = sorted({len(lives) for _, lives in runs})
        kernel = platform.release().split("-")[0]
        numbers = {
            "kernel": records.KERNEL if options.replay else kernel,
            "seeds": options.seeds,
            "lives": " or ".join(map(str, lives)) + (" times" if lives != [1] else " time"),
            "again": repetition(before, lives[0]) if len(lives) > 1 else "",
        }
        out.write_text(page(families, causes(), numbers))
        print(out)


if __name__ == "__main__":
    main()
