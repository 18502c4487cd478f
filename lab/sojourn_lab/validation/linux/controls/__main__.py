"""`make validate-linux-controls`: Linux's congestion controls and ours on the same paths.

Writes reports/validation-linux-controls.md from the recordings in lab/vectors/linux/controls.csv.
With `--record` the recordings are made first, in a kernel built from linux-source (see
`validation/linux/fresh/kernel.py`).
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sojourn as sj
from sojourn_lab import ROOT
from sojourn_lab.validation.linux.controls import record
from sojourn_lab.validation.linux.controls.network import Setup
from sojourn_lab.validation.linux.controls.record import Run
from sojourn_lab.validation.linux.fresh import kernel
from sojourn_lab.validation.senders import BURST, FRAME, LONGER

PAGE = ROOT / "reports/validation-linux-controls.md"

CONTROLS = (
    "cubic", "reno", "htcp", "hybla", "westwood", "illinois", "veno", "bic", "scalable",
    "highspeed", "yeah", "nv", "cdg",
)  # fmt: skip
"""The first two are in the kernel of every host; the others are its modules."""

SETUPS = (
    Setup("droptail", 10, 40, "pfifo limit 33"),
    Setup("small", 10, 40, "pfifo limit 8"),
    Setup("codel", 10, 40, "codel limit 1000"),
    Setup("long", 10, 100, "pfifo limit 83", seconds=30, warm=6),
    Setup("loss", 10, 40, "pfifo limit 33", loss=0.01, seconds=100),
    Setup("cubic", 10, 40, "pfifo limit 66", rival="cubic", seconds=60, warm=6),
)

RUNS = 5
"""Runs of ours of each case."""

SECTIONS = Path(__file__).parent / "page.md"
"""Text of the page before the table."""


def scenario(setup: Setup, control: str, run: int) -> dict[str, Any]:
    """Return the scenario of a run."""
    rtt = f"{setup.rtt_ms * (1 + LONGER * run):g}ms"
    names = [control, setup.rival] if setup.rival else [control]
    path = ["lossy", "bottleneck"] if setup.loss else ["bottleneck"]
    flows: list[dict[str, Any]] = [
        {
            "name": f"{letter}",
            "path": path,
            "rtt": rtt,
            "tcp": {**FRAME, "name": f"linux_{name}"},
            "source": {"name": "bulk", "start": f"{130 * i}ms"},
        }
        for i, (letter, name) in enumerate(zip("AB", names, strict=False))
    ]
    probe = {"name": "cbr", "rate": "40kbit", "packet": "50B"}
    flows.append({"name": "probe", "path": path, "rtt": rtt, "source": probe})
    bottleneck = {
        "rate": f"{setup.rate_mbit}mbit",
        "burst": BURST,
        "delay": f"{setup.rtt_ms / 2:g}ms",
        "qdisc": f"tc: {setup.tc}",
    }
    links: dict[str, Any] = {"bottleneck": bottleneck}
    if setup.loss:
        links["lossy"] = {"rate": "100gbit", "delay": "0ms", "loss": setup.loss}
    return {
        "duration": f"{setup.seconds}s",
        "warmup": f"{setup.warm}s",
        "seed": run + 1,
        "packet_log": True,
        "links": links,
        "flows": flows,
    }


def simulate(setup: Setup, control: str, run: int) -> Run:
    """Simulate a run once."""
    result = sj.simulate(scenario(setup, control, run))
    link = result.links["bottleneck"]
    log = link.packet_log
    probe = 2 if setup.rival else 1
    chosen = (log["flow"] == probe) & (log["fate"] == 0) & (log["arrived_s"] >= setup.warm)
    delays = 1e3 * (log["left_s"][chosen] - log["arrived_s"][chosen])
    rates = [result.flows[name].goodput_bps / 1e6 for name in "AB"[:probe]] + [0.0]
    p99 = float(np.percentile(delays, 99))
    dropped = link["dropped_packets"]
    return Run("", setup.name, control, rates[0], rates[1], dropped, float(delays.mean()), p99)


NUMBERS = ("goodput_mbit", "rival_mbit", "drops", "delay_ms", "delay_p99_ms")


def cell(theirs: float, ours: list[float], digits: int) -> str:
    """Return the value of Linux, and mean and range of ours."""
    low, mean, high = (f"{f(ours):.{digits}f}" for f in (np.min, np.mean, np.max))
    return f"{theirs:.{digits}f} / {mean} ({low}-{high})"


def is_close(theirs: float, ours: list[float], share: float, least: float) -> bool:
    """Return True if the mean of ours differs by a share or an amount, or theirs is in range."""
    near = abs(float(np.mean(ours)) - theirs) <= max(share * theirs, least)
    return near or min(ours) <= theirs <= max(ours)


def page(runs: list[Run]) -> str:
    """Return the page."""
    setups = {setup.name: setup for setup in SETUPS}
    rows, goodputs, losses = [], 0, 0
    for run in runs:
        setup = setups[run.setup]
        ours = [simulate(setup, run.control, i) for i in range(RUNS)]
        values = {name: [getattr(one, name) for one in ours] for name in NUMBERS}
        close = is_close(run.goodput_mbit, values["goodput_mbit"], 0.03, 0)
        few = is_close(run.drops, values["drops"], 0.3, 3)
        goodputs, losses = goodputs + close, losses + few
        cells = [f"`{run.control}`", run.setup]
        for name, digits in zip(NUMBERS, (2, 2, 0, 1, 1), strict=True):
            empty = name == "rival_mbit" and not setup.rival
            cells.append("" if empty else cell(getattr(run, name), values[name], digits))
        cells.append(" ".join(["" if close else "goodput", "" if few else "drops"]).strip())
        rows.append("| " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    paths = [
        f"| {s.name} | `{s.tc}`{f', {s.loss:.0%} random loss' if s.loss else ''} | {s.rtt_ms} ms "
        f"| {'two, the second one cubic' if s.rival else 'one'} | {s.seconds - s.warm} s |"
        for s in SETUPS
    ]
    head = SECTIONS.read_text().format(
        kernel=runs[0].kernel, setups=len(SETUPS), paths="\n".join(paths), cases=len(runs),
        goodputs=goodputs, losses=losses, runs=RUNS,
    )  # fmt: skip
    return head + "\n".join(rows) + "\n"


def main() -> None:
    """Make recordings if asked, compare them, and write the page."""
    parser = argparse.ArgumentParser(
        prog="sojourn_lab.validation.linux.controls", description=__doc__
    )
    parser.add_argument("--record", nargs="*", metavar="CONTROL", help="record these, or all")
    parser.add_argument("--only", nargs="*", help="compare these controls, and print only")
    options = parser.parse_args()
    if options.record is not None:
        kept: dict[str, list[Run]] = (
            {run.control: [] for run in record.read()} if record.DATA.exists() else {}
        )
        for run in record.read() if kept else ():
            kept[run.control].append(run)
        for control in options.record or CONTROLS:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    kept[control] = record.record(control, SETUPS, Path(folder))
                except (kernel.NoKernelError, subprocess.CalledProcessError) as error:
                    sys.exit(f"validate-linux-controls: {error}")
            order = [name for name in CONTROLS if name in kept]
            record.write(run for name in order for run in kept[name])
            print(*kept[control], sep="\n", flush=True)
    runs = [run for run in record.read() if not options.only or run.control in options.only]
    if options.only:
        page(runs)
    elif options.record is None:
        PAGE.write_text(page(runs))


if __name__ == "__main__":
    main()
