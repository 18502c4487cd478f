"""Workloads of the benchmarks of topologies: scenarios by name, and programs that run them.

`FULL` has the workloads of `make bench`, `SMALL` those whose instructions per packet-hop are
counted. Scenarios come from sojourn's topologies. The example `workload` of the crate sojourn-sim
runs one in a process of its own.
"""

import json
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn.fabric import sizes
from sojourn.scenario.draft import parse
from sojourn_lab import ROOT

BINARY = ROOT / "target" / "release" / "examples" / "workload"

WEB_SEARCH_MEAN = 1.65e6
"""Mean size in bytes of a transfer of the web-search distribution."""

THRESHOLD = sj.Red(min_th="90kB", max_th="91kB", w_q=1, limit="400kB", ecn=True)
"""RED as a marking threshold of 90 kB, for DCTCP."""

DCTCP = sj.tcp.Dctcp(rto_min="5ms", rto_initial="5ms", tick="100us", delayed_ack=False)


def s1(*, flows: int = 300, seconds: float = 200, **settings: Any) -> sj.Scenario:
    """Return S1: `flows` bulk NewReno flows under RED, 150 kbit/s and 1 kB of buffer each."""

    def kb(each: int) -> str:
        return f"{max(each * flows // 300, each // 60)}kB"

    return sj.dumbbell(
        flows,
        rate=f"{150 * flows}kbit",
        rtt="uniform(40ms, 200ms)",
        qdisc=sj.Red(limit=kb(300), min_th=kb(75), max_th=kb(150), gentle="two_max_th"),
        tcp={"name": "newreno", "packet": "500B"},
        source=f"bulk(start=uniform(0s, {round(seconds * 50)}ms))",
        duration=f"{round(seconds * 1e3)}ms",
        **settings,
    )


def fat_tree(
    k: int,
    *,
    transfers: float,
    shifts: int,
    most: int = 500,
    load: float = 0.5,
    size: str = "web_search",
    ms: float | None = None,
    **settings: Any,
) -> sj.Scenario:
    """Return a fat tree at 10 Gbit/s with transfers of DCTCP.

    Parameters
    ----------
    k : int
        Number of ports of a switch.
    transfers : float
        Expected number of transfers, which sets the time in which they start.
    shifts : int
        Number of hosts to which each host sends: that many groups per host.
    most : int, optional
        Largest number of transfers of a group at the same time.
    load : float, optional
        Load of the links of the hosts.
    size : str, optional
        Distribution of the sizes.
    ms : float, optional
        Simulated time; by default 5 ms after the last start.
    **settings
        As of `sojourn.fat_tree`, also in place of the discipline and of DCTCP.
    """
    hosts = k**3 // 4
    distances = random.Random(1).sample(range(1, hosts), shifts)
    pairs = [(host, (host + distance) % hosts) for distance in distances for host in range(hosts)]
    mean = WEB_SEARCH_MEAN if size == "web_search" else sizes.mean(size)
    stop_ms = 1e3 * transfers / (load * 10e9 / 8 / mean * hosts)
    source = sj.source.Poisson(
        size=size, most=most, load=f"{load * 1e4 / shifts}mbit", stop=f"{stop_ms:.4f}ms"
    )
    return sj.fat_tree(
        k, "hash", pairs=pairs, rate="10gbit", delay="1us", source=source,
        duration=f"{stop_ms + 5 if ms is None else ms:.3f}ms",
        **{"qdisc": THRESHOLD, "tcp": DCTCP, **settings},
    )  # fmt: skip


def leaf_spine(
    leaves: int, *, clients: int, spines: int = 4, size: str = "20kB", ms: float
) -> sj.Scenario:
    """Return a leaf-spine network with incast, in which acknowledgements cross links as well.

    Each client queries one server on each leaf, which all answer at the same time. The clients
    share a rack, `rack`. Client r uses spine r modulo `spines`.
    """
    link = sj.Link(rate="10gbit", delay="1us", qdisc=THRESHOLD)
    names: dict[str, None] = {}
    flows = []
    for r in range(clients):
        spine, nodes = f"s{r % spines}", [f"h{r}x{{i}}", "l{i}"]
        nodes += [spine, "rack", f"c{r}"]
        path = [f"{a}-{b}" for a, b in pairwise(nodes)]
        back = [f"{b}-{a}" for a, b in pairwise(nodes)][::-1]
        flows.append(
            sj.Flow(name=f"query-{r}", count=leaves, path=path, return_path=back, tcp=DCTCP,
                    source=sj.source.Incast(size=size))
        )  # fmt: skip
        names |= dict.fromkeys(n.format(i=i) for n in [*path, *back] for i in range(leaves))
    links = dict.fromkeys(names, link)
    return sj.Scenario(name="leaf-spine", duration=f"{ms}ms", links=links, flows=flows)


def parking_lot(hops: int, *, ms: int, long: int = 10, cross: int = 4) -> sj.Scenario:
    """Return `hops` bottlenecks of 100 Mbit/s in a row under CoDel, with flows of NewReno."""
    return sj.parking_lot(
        hops, long=long, cross=cross, rate="100mbit", delay="1ms", qdisc="codel", tcp="newreno",
        duration=f"{ms}ms",
    )  # fmt: skip


def star(senders: int, *, ms: int) -> sj.Scenario:
    """Return `senders` of DCTCP that answer queries at the same time."""
    return sj.star(senders, qdisc=THRESHOLD, tcp=DCTCP, duration=f"{ms}ms")


FULL: dict[str, Callable[[], sj.Scenario]] = {
    "S1": s1,
    "fat tree, k = 8": lambda: fat_tree(8, transfers=2000, shifts=8),
    "fat tree, k = 16": lambda: fat_tree(16, transfers=4000, shifts=2, most=60),
    "leaf-spine, incast": lambda: leaf_spine(32, clients=16, ms=200),
    "parking lot, 50 links": lambda: parking_lot(50, ms=20_000),
    "star, incast": lambda: star(64, ms=2_000),
}
"""Workloads of `make bench`, in seconds of processor time each. The first is the reference."""


SMALL: dict[str, tuple[Callable[[float], sj.Scenario], float, float]] = {
    "fat-tree": (lambda ms: fat_tree(8, transfers=500, shifts=1, ms=ms), 1, 2),
    "leaf-spine": (lambda ms: leaf_spine(16, clients=4, ms=ms), 2, 6),
    "parking-lot": (lambda ms: parking_lot(50, long=2, cross=1, ms=round(ms)), 300, 600),
    "star": (lambda ms: star(32, ms=round(ms)), 20, 60),
}
"""Small workloads: a scenario by its simulated time, and two times in ms to subtract."""


@dataclass(frozen=True)
class Cost:
    """Measured cost of a run: packet-hops, processor time in seconds, and memory in kB."""

    hops: int
    read_s: float
    run_s: float
    read_kb: int | None
    run_kb: int | None

    @property
    def ns(self) -> float:
        """Processor time in ns per packet-hop, with set-up and outcome."""
        return 1e9 * self.run_s / self.hops


def machine() -> str:
    """Return the processor, its cores, and the load of the machine now."""
    info = Path("/proc/cpuinfo")
    name = (
        re.search(r"^model name\s*: (.*)", info.read_text(), re.MULTILINE)
        if info.exists()
        else None
    )
    load = os.getloadavg()[0]
    return f"{name[1] if name else 'unknown processor'}, {os.cpu_count()} cores, load {load:.1f}"


def build(*others: str) -> None:
    """Build the program that runs a workload, and other examples of sojourn-sim."""
    line = ["cargo", "build", "--quiet", "--release", "-p", "sojourn-sim", "--example", "workload"]
    line += [word for name in others for word in ("--example", name)]
    subprocess.run(line, check=True, cwd=ROOT)


def write(scenario: sj.Scenario, file: Path) -> Path:
    """Write the canonical text of a scenario, which the program reads."""
    file.write_text(parse(scenario).canonical())
    return file


def measure(file: Path) -> Cost:
    """Run a workload once in a process of its own."""
    done = subprocess.run([BINARY, file], check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout))


def measure_in_turns(scenarios: dict[str, sj.Scenario], turns: int) -> dict[str, Cost]:
    """Measure scenarios in turns; return the fastest run of each."""
    best: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {
            name: write(scenario, Path(folder) / f"{n}.json")
            for n, (name, scenario) in enumerate(scenarios.items())
        }
        for _ in range(turns):
            for name, file in files.items():
                cost = measure(file)
                best[name] = min(cost, best.get(name, cost), key=lambda cost: cost.run_s)
    return best
