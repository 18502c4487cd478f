"""Runs of QUIC stacks behind six disciplines, in virtual time.

`make quic-study` builds the stacks with their adapters, and runs them and sojourn's own senders
with `profile = "quic"` through the same bottleneck. All seeds are fixed. The page is written by
`quic_page`.
"""

import json
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryFile

import sojourn as sj
from sojourn_lab import ROOT

PROGRAM = ROOT / "target" / "adapters" / "release" / "sojourn-quic-study"
STACKS = ("quinn", "s2n-quic")
CONTROLS = ("cubic", "bbr")
QDISCS = ("droptail(limit=312500B)", "codel", "fq_codel", "cake", "pie", "dualpi2")
FLOWS = (1, 2, 8)
WARMUP_S, MEASURED_S = 5, 20
OURS = "sojourn"
"""Name of sojourn's own senders in the table."""

SENDERS = (*product(STACKS, CONTROLS), *product((OURS,), CONTROLS))
"""Stacks with their controls."""

WITHOUT_ECN = "fq_codel(ecn=false)"
"""Discipline of the experiment in which packets are dropped in place of being marked."""


@dataclass(frozen=True)
class Run:
    """Measurements of a run after its warm-up."""

    goodput_bps: list[float]
    p50_s: float
    p99_s: float
    dropped: float
    marked: float

    @property
    def signals(self) -> float:
        """Share of the packets that were dropped or marked."""
        return self.dropped + self.marked

    @property
    def total_mbps(self) -> float:
        """Goodput of all flows in Mbit/s."""
        return sum(self.goodput_bps) / 1e6

    @property
    def jain(self) -> float:
        """Jain's index of the goodputs."""
        squares = sum(x * x for x in self.goodput_bps)
        return sum(self.goodput_bps) ** 2 / (len(self.goodput_bps) * squares) if squares else 0.0


Case = tuple[str, str, int, str]
"""Stack, control, number of flows, discipline."""


def stacks(cases: Sequence[tuple[Case, int]], program: Path) -> Iterator[Run]:
    """Yield the runs of QUIC stacks, each a case with a seed, by the program of the adapters.

    Raises
    ------
    SystemExit
        If the program fails.
    """
    lines = [
        f"{stack} {control} {flows} {seed} {WARMUP_S} {MEASURED_S} {qdisc}\n"
        for (stack, control, flows, qdisc), seed in cases
    ]
    with TemporaryFile("w+") as file:
        file.writelines(lines)
        file.seek(0)
        with subprocess.Popen([program], stdin=file, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Run(**json.loads(line))
    if process.returncode:
        raise SystemExit(f"{program} failed")


def own(case: Case, seed: int) -> Run:
    """Run sojourn's senders through the same bottleneck."""
    _, control, flows, qdisc = case
    scenario = {
        "duration": f"{WARMUP_S + MEASURED_S}s",
        "warmup": f"{WARMUP_S}s",
        "seed": seed,
        "links": {
            "down": {"rate": "10mbit", "delay": "20ms", "qdisc": qdisc},
            "up": {"rate": "100mbit", "delay": "20ms", "qdisc": "droptail"},
        },
        "flows": [
            {
                "name": "bulk",
                "count": flows,
                "path": ["down"],
                "return_path": ["up"],
                "tcp": {"name": control, "profile": "quic", "ecn": control == "cubic"},
                "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
            }
        ],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sj.ScenarioWarning)  # ECN where nothing marks
        result = sj.simulate(scenario)
    link = result.links["down"]
    came = max(link["arrived_packets"], 1)
    return Run(
        [flow["goodput_bps"] for flow in result.flows.values()],
        link["sojourn_p50_s"] or 0.0,
        link["sojourn_p99_s"] or 0.0,
        link["dropped_packets"] / came,
        link["marked_packets"] / came,
    )


def measured(
    cases: Sequence[Case], seeds: int, program: Path, kept: Path | None = None
) -> dict[Case, list[Run]]:
    """Return the runs of each case, by seed.

    Runs that the file `kept` has are not repeated; new ones are added to it.
    """
    done: dict[tuple[Case, int], Run] = {}
    if kept is not None and kept.exists():
        for line in kept.read_text().splitlines():
            (case, seed), run = json.loads(line)
            done[tuple(case), seed] = Run(**run)
    left = [(case, seed) for case in cases for seed in range(1, seeds + 1)]
    left = [one for one in left if one not in done]
    theirs = [one for one in left if one[0][0] != OURS]
    runs = stacks(theirs, program) if theirs else iter(())
    for case, seed in left:
        run = own(case, seed) if case[0] == OURS else next(runs)
        done[case, seed] = run
        if kept is not None:
            with kept.open("a") as file:
                file.write(json.dumps([[case, seed], asdict(run)]) + "\n")
    return {case: [done[case, seed] for seed in range(1, seeds + 1)] for case in cases}


def cases(flows: Sequence[int] = FLOWS, qdiscs: Sequence[str] = QDISCS) -> list[Case]:
    """Return the cases of the page, and the cases of the experiment without ECN."""
    main = [
        (stack, control, count, qdisc)
        for count in flows
        for qdisc in qdiscs
        for stack, control in SENDERS
    ]
    return main + [("s2n-quic", "bbr", count, WITHOUT_ECN) for count in flows]
