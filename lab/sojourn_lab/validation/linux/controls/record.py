"""Recordings of Linux's controls: runs in a kernel in user mode whose clock stands still."""

import csv
import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from sojourn_lab import ROOT
from sojourn_lab.validation.linux import user_mode
from sojourn_lab.validation.linux.controls import network
from sojourn_lab.validation.linux.controls.network import Setup
from sojourn_lab.validation.linux.fresh import kernel

DATA = ROOT / "lab/vectors/linux/controls.csv"

OPTIONS = ("time-travel=inf-cpu",)
"""Words on the kernel's command line: its clock stands still while it computes."""


@dataclass(frozen=True)
class Run:
    """Numbers of a run after the warm-up."""

    kernel: str
    setup: str
    control: str
    goodput_mbit: float
    rival_mbit: float
    """Goodput of the second flow; 0 without one."""
    drops: float
    """Packets that the qdisc dropped."""
    delay_ms: float
    """Mean queueing delay of the probes."""
    delay_p99_ms: float


def drops(path: Path) -> int:
    """Return the drops that `tc` shows for the qdisc below HTB."""
    qdiscs = json.loads(path.read_text())
    return int(next(q["drops"] for q in qdiscs if q["handle"] == "10:"))


def parse(version: str, setup: Setup, control: str, folder: Path) -> Run:
    """Return the numbers of a run from the files that it left."""
    *counts, _, mean, p99 = map(float, (folder / "out").read_text().split())
    seconds = setup.seconds - setup.warm
    rates = [8e-6 * count / seconds for count in counts] + [0.0]
    dropped = drops(folder / "after.json") - drops(folder / "before.json")
    base = 1e6 * setup.rtt_ms / 2
    delays = [(delay - base) / 1e6 for delay in (mean, p99)]
    return Run(
        version, setup.name, control, round(rates[0], 4), round(rates[1], 4), dropped,
        round(delays[0], 3), round(delays[1], 3),
    )  # fmt: skip


def record(control: str, setups: Sequence[Setup], folder: Path) -> list[Run]:
    """Let the kernel run a control in each set-up, in one boot."""
    binary = kernel.kernel()
    program = folder / "flows"
    source = Path(__file__).parent / "flows.c"
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    script = ["uname -r", *network.prepare()]
    places = [folder / f"{control}-{setup.name}" for setup in setups]
    show = "tc -n r -s -j qdisc show dev r1"
    for setup, place in zip(setups, places, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        (place / "warm.sh").write_text(f"{show} > {place}/before.json\n")
        names = [control, setup.rival] if setup.rival else [control]
        words = f"{setup.seconds} {setup.warm} {place}/warm.sh {' '.join(names)}"
        script += [*network.up(setup), f"{program} {words} > {place}/out"]
        script += [f"{show} > {place}/after.json", *network.down()]
    text = user_mode.run("\n".join(script), folder, str(binary), OPTIONS)
    for place in places:
        if not (place / "out").exists() or not (place / "out").read_text().strip():
            raise kernel.NoKernelError(f"no result in {place}:\n{text[-2000:]}")
    version = text.split()[0]
    return [parse(version, s, control, p) for s, p in zip(setups, places, strict=True)]


def write(runs: Iterable[Run]) -> None:
    """Write the recordings."""
    names = [field.name for field in fields(Run)]
    with DATA.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(run) for run in runs)


def read() -> Iterator[Run]:
    """Iterate over the recordings in the repository."""
    with DATA.open(newline="") as file:
        for row in csv.DictReader(file):
            numbers = [float(row[field.name]) for field in fields(Run)[3:]]
            yield Run(row["kernel"], row["setup"], row["control"], *numbers)
