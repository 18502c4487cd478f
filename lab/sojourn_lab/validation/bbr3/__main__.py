"""`make validate-bbr3`: BBRv3 of a kernel and ours, written to reports/validation-bbr3.md.

The runs of the kernel are recorded; `--kernel` makes them anew.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sojourn_lab import ROOT
from sojourn_lab.validation.bbr3 import tables
from sojourn_lab.validation.random import records, virtual
from sojourn_lab.validation.random.agreement import Row, rows, without_difference
from sojourn_lab.validation.random.causes import Cause, causes
from sojourn_lab.validation.random.draw import Scenario, draw
from sojourn_lab.validation.random.measure import Numbers
from sojourn_lab.validation.random.report import agreement_table, control_table, differences
from sojourn_lab.validation.random.simulate import simulate
from sojourn_lab.validation.report import table

HERE = Path(__file__).parent
PAGE = ROOT / "reports/validation-bbr3.md"
RECORDED = HERE / "recorded.jsonl.gz"
SEED, POOL, SCENARIOS = "bbr3-2026-11-26", ("bbr3", "bbr3", "cubic"), 160
SEEDS = 6

OF_LOSS = f"""\
Goodput of one flow in Mbit/s over {tables.LOSS_RATE_MBIT} Mbit/s and {tables.LOSS_RTT_MS} ms with
random loss, 8 s to 32 s after its start; drop-tail with two bandwidth-delay products. Kernel /
simulated.
"""

OF_BUFFERS = f"""\
One `bbr3` and one `cubic` flow over {tables.BUFFER_RATE_MBIT} Mbit/s and {tables.BUFFER_RTT_MS} ms
with drop-tail, 20 s to 60 s after the start. Kernel / simulated.
"""

PUBLISHED = """\
Published for BBR at 100 Mbit/s and 100 ms (Cardwell et al., *BBR: Congestion-Based Congestion
Control*, 2016, figure 8): the rate that is not lost up to 5 %, close to it up to 15 %; CUBIC falls
to a tenth at 0.1 % and stalls above 1 %. BBRv3 reduces its window when more than 2 % of a flight
are lost (draft-ietf-ccwg-bbr, `BBR.LossThresh`), so its goodput falls there by design.
"""
LIVES = {"loss": 3}
"""Runs of the kernel, by the first word of a scenario's name; otherwise one."""

Runs = list[tuple[Scenario, list[Numbers]]]


def scenarios() -> Iterator[Scenario]:
    """Iterate over the scenarios of the tables, then over the random ones."""
    yield from tables.scenarios()
    for number in range(SCENARIOS):
        yield draw(SEED, number, POOL)


def recorded() -> tuple[Runs, Runs]:
    """Return the recorded runs of the tables, and the random ones."""
    runs = records.runs(records.read(RECORDED))
    random = [run for run in runs if run[0]["name"].startswith("r")]
    return [run for run in runs if run not in random], random


def compared(runs: Runs, seeds: int, jobs: int) -> list[Row]:
    """Return the comparison of each run with new simulations."""
    return rows(runs, simulate([scenario for scenario, _ in runs], seeds, jobs))


def _pair(row: Row, metric: str, digits: int) -> str:
    """Return kernel / simulated."""
    c = row.compared[metric]
    return f"{c.live:.{digits}f} / {c.simulated:.{digits}f}"


def loss_table(by_name: Mapping[str, Row]) -> str:
    """Return the goodput by control and random loss."""
    head = ("loss", *(f"`{control}`" for control in tables.LOSS_CONTROLS))
    lines = [
        (
            f"{100 * share:g} %",
            *(_pair(by_name[f"loss-{c}-{share:g}"], "goodput", 2) for c in tables.LOSS_CONTROLS),
        )
        for share in tables.LOSSES
    ]
    return table(head, lines)


def buffer_table(by_name: Mapping[str, Row]) -> str:
    """Return the share of BBRv3 in a link with one CUBIC flow, by buffer."""
    head = ("buffer, BDP", "share of `bbr3`, %", "goodput, Mbit/s", "mean delay, ms", "loss, %")
    lines = []
    for products in tables.PRODUCTS:
        row = by_name[f"buffer-{products:g}"]
        share = row.compared["share"]
        lines.append(
            (
                f"{products:g}",
                f"{100 * share.live:.0f} / {100 * share.simulated:.0f}",
                _pair(row, "goodput", 2),
                _pair(row, "delay", 1),
                _pair(row, "loss", 2),
            )
        )
    return table(head, lines)


def page(random: Sequence[Row], fixed: Sequence[Row], known: Sequence[Cause]) -> str:
    """Return the page."""
    head = (HERE / "page.md").read_text()
    counts = {"agree": without_difference(random), "all": len(random)}
    head = head.format(**counts, seeds=SEEDS, lives=LIVES["loss"])
    by_name = {row.scenario["name"]: row for row in fixed}
    lines = ["## Random loss", "", OF_LOSS, loss_table(by_name), PUBLISHED]
    lines += ["## BBRv3 and CUBIC by buffer size", "", OF_BUFFERS, buffer_table(by_name)]
    lines += ["## Agreement by metric", "", *agreement_table({"bbr3 and cubic": random})]
    lines += ["## Agreement by control", "", *control_table(random), "## Causes", ""]
    for cause in known:
        lines += [f"**{cause.title}.** {cause.text.strip()}", ""]
    lines += ["## Differences", "", *differences(random, known)]
    return head + "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Record if asked, compare, and write the page."""
    parser = argparse.ArgumentParser(prog="sojourn_lab.validation.bbr3", description=__doc__)
    option = parser.add_argument
    option("--kernel", type=Path, help="kernel in user mode: make the recordings anew")
    option("--jobs", type=int, default=2, help="runs at once (2)")
    options = parser.parse_args()
    if options.kernel:
        wanted = [
            (scenario, seed + 1)
            for scenario in scenarios()
            for seed in range(LIVES.get(scenario["name"].split("-")[0], 1))
        ]
        order = {(scenario["name"], seed): n for n, (scenario, seed) in enumerate(wanted)}
        results = []
        for record in virtual.run_all(options.kernel, wanted, options.jobs):
            print(record["scenario"]["name"], record.get("error", ""), flush=True)
            results.append(record)
        results.sort(key=lambda r: order[r["scenario"]["name"], r["seed"]])
        records.keep((record for record in results if record.get("punctual")), RECORDED)
    fixed, random = recorded()
    known = causes(HERE / "causes.toml")
    text = page(compared(random, SEEDS, options.jobs), compared(fixed, SEEDS, options.jobs), known)
    PAGE.write_text(text)
    print(PAGE)


if __name__ == "__main__":
    main()
