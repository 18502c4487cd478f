"""Every reader of files and texts: valid inputs, and what a command does with them.

`test_readers` feeds each with mutants. A reader raises InputError, or ends with a result.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sojourn as sj
from conftest import EXAMPLES, SMALL
from mutation import altered, toml
from sojourn import tc
from sojourn._util.units import seconds
from sojourn.explanation.live_link import report_in
from sojourn.fabric import flow_list, topology_file
from sojourn.plotting import style
from sojourn.recommendation import line
from sojourn.result import folders
from sojourn.scenario import variants
from sojourn.scenario.draft import Draft, canonical
from sojourn.sweeps import query
from sojourn.sweeps.conditions import conditions
from sojourn.sweeps.rows import axes_of
from sojourn.sweeps.spec import read_sweep
from sojourn.sweeps.store import Store
from support import captures
from support.file_mutants import frames, trees
from support.link_reports import report
from test_flow_lists import LISTS as FLOW_LISTS
from test_mutated_files import (
    ARRIVALS,
    DECISIONS,
    MOMENTS,
    PACKETS,
    RATES,
    binned,
    followed,
    linked,
    replayed,
    sent,
)
from test_mutated_sweeps import SCENARIO, SWEEP, UNTIL
from test_parsimon import CLUSTER, NETWORK
from test_parsimon import FLOWS as PARSIMON_FLOWS
from test_topology_files import HPCC, HTSIM

MEMBERS = 3_000
"""Largest number of flows, and of milliseconds, of a mutant that is run."""


@dataclass(frozen=True)
class Reader:
    """Input of a command.

    Attributes
    ----------
    make : callable
        Write valid files into a folder; return the paths of those to mutate.
    use : callable
        Read the folder or the file, as a command does.
    mutate : callable
        Return a mutant of the contents of a file, given its path, contents and a seed.
    whole : bool
        True if `use` takes the folder, False if it takes the mutated file.
    texts : tuple of str
        Inputs of a reader of texts on the command line; then there are no files.
    forgiving : bool
        True if damage is repaired, not refused.
    """

    make: Callable[[Path], list[Path]] = lambda folder: []
    use: Callable[[Any], None] = lambda _: None
    mutate: Callable[[Path, bytes, int], bytes] = lambda path, raw, seed: altered(raw, seed)
    whole: bool = False
    texts: tuple[str, ...] = ()
    forgiving: bool = False


def written(name: str, text: str) -> Callable[[Path], list[Path]]:
    """Return a function that writes one file."""

    def make(folder: Path) -> list[Path]:
        path = folder / name
        path.write_text(text)
        return [path]

    return make


def captured(form: str) -> Callable[[Path], list[Path]]:
    """Return a function that writes a capture, as pcap or pcapng."""

    def make(folder: Path) -> list[Path]:
        path = folder / f"packets.{form}"
        write = captures.pcapng if form == "pcapng" else captures.one_way
        return [write(path)]

    return make


def small_enough(tree: Mapping[str, Any]) -> bool:
    """Return True if a canonical scenario is quick to run."""
    flows = sum(flow["count"] for flow in tree["flows"])
    return flows <= MEMBERS and seconds(tree["duration"]) * 1e3 <= MEMBERS


def scenario(path: Path) -> None:
    """Read a scenario as `run` and `explain` do."""
    tree = Draft.read(path).tree
    try:
        whole = canonical(tree)
    except sj.InputError as error:
        raise sj.InputError(f"{path}: {error}") from None
    if small_enough(whole):
        sj.explain(sj.simulate(tree))


def traffic(path: Path) -> None:
    """Read the flows of a scenario as `recommend --traffic` does."""
    line.make("20mbit", "5mbit", "20ms", str(path))


def line_trace(path: Path) -> None:
    """Read the rate of a line as `recommend --down` does."""
    line.make(str(path), "5mbit", "20ms", "home")


def swept(path: Path) -> None:
    """Read a sweep file."""
    read_sweep(path)


def result_in(folder: Path) -> list[Path]:
    """Write a result with series, packet log, queries, TCP, UDP, video and a call."""
    sj.simulate(WHOLE).save(folder)
    return sorted(folder.iterdir())


def explained(folder: Path) -> None:
    """Load and explain a result, and show its row and its tables."""
    kind = folders.kind_of(folder)
    if kind not in ("run", "comparison"):
        raise sj.InputError(f"{folder}: holds no run")
    if kind == "comparison":
        sj.load_comparison(folder)
    else:
        result = sj.load_result(folder)
        for finding in sj.explain(result):
            assert finding.text
        for table in ("flows", "links", "series", "group_series", "packet_log", "fct", "queries"):
            result.frame(table)
    conditions(folder)
    means_of(folder)


def means_of(folder: Path) -> None:
    """Show the means of all columns of stored results, as `results` does."""
    rows = sj.results(folder)
    names = [query.column(rows, name) for name in query.USUAL]
    query.means(rows, axes_of(rows), names).to_dicts()


def comparison_in(folder: Path) -> list[Path]:
    """Write a comparison; only its index is mutated."""
    tree = {**tomllib.loads(SMALL), "duration": "300ms", "warmup": "0s"}
    sj.compare(tree, ["red", "codel"], out=folder, seeds=2)
    return [folder / "comparison.json"]


def store_in(folder: Path) -> list[Path]:
    """Write the runs of a sweep."""
    tree = {**tomllib.loads(SMALL), "duration": "100ms", "warmup": "0s"}
    sj.sweep(tree, {"up.qdisc": ["red", "codel"], "bulk.count": [1, 2]}, seeds=2, out=folder)
    return sorted([*folder.glob("*.parquet"), *folder.glob("_sweep-*.json")])


def stored(folder: Path) -> None:
    """Read a store whose parts have the right names, so that damage is not noticed by the hash."""
    from sojourn.sweeps.store import _name

    for part in [*folder.glob("*.parquet")]:
        part.rename(folder / _name(part.read_bytes()))
    conditions(folder)
    means_of(folder)


def damaged(folder: Path) -> None:
    """Read a store with damaged parts."""
    if len(rows := Store(folder).rows()):
        query.means(sj.results(folder), axes_of(rows), ["utilisation"])
    for part in (folder / "_damaged").glob("*"):
        part.unlink()


def run_into(folder: Path) -> None:
    """Run into a folder with a damaged result, as `run --out` does."""
    result = sj.simulate(WHOLE)
    folders.claim_run(folder, result.scenario, force=False)


def compared_into(folder: Path) -> None:
    """Compare into a folder with a damaged comparison, as `compare --out` does."""
    tree = {**tomllib.loads(SMALL), "duration": "300ms", "warmup": "0s"}
    sj.compare(tree, ["red"], out=folder)


def swept_into(folder: Path) -> None:
    """Continue a sweep in a damaged store, as `sweep --out` does."""
    tree = {**tomllib.loads(SMALL), "duration": "100ms", "warmup": "0s"}
    sj.sweep(tree, {"up.qdisc": ["red", "codel"], "bulk.count": [1, 2]}, seeds=2, out=folder)


def evaluation_in(folder: Path) -> list[Path]:
    """Write an evaluation; its scorecard is written, but never read."""
    sj.evaluate(["codel"], "2mbit", quick=True, only=["H2"], out=folder)
    runs = folder / "runs"
    return [folder / "summary.json", *sorted([*runs.glob("*.parquet"), *runs.glob("_*.json")])]


def evaluated_into(folder: Path) -> None:
    """Continue an evaluation in a damaged folder, as `evaluate --out` does."""
    sj.evaluate(["codel"], "2mbit", quick=True, only=["H2"], out=folder)


def evaluated(folder: Path) -> None:
    """Show the runs of an evaluation, as `results` does."""
    conditions(folder / "runs")
    means_of(folder / "runs")


def saved(folder: Path) -> list[Path]:
    """Write a running simulation."""
    sim = sj.Simulation(WHOLE)
    sim.run_until("700ms")
    sim.save(folder / "warm.snapshot")
    return [folder / "warm.snapshot"]


def loaded(path: Path) -> None:
    """Load a simulation and run it to its end."""
    sj.Simulation.load(path).run()


def topology(path: Path) -> None:
    """Read a topology as `topology import` does."""
    topology_file.read(path).links("droptail")


def listed(path: Path) -> None:
    """Read a list of flows, as a group with `traffic` does."""
    flow_list.read(path)


def styled(path: Path) -> None:
    """Read a style sheet as `--style` does."""
    style.check({"style": path})


def reported(path: Path) -> None:
    """Explain the report of a live link."""
    report = report_in(path)
    if report is None:
        raise sj.InputError(f"{path}: is not a report")
    try:
        sj.explain(report)
    except sj.InputError as error:
        raise sj.InputError(f"{path}: {error}") from None


def imported(path: Path) -> None:
    """Import commands or output of tc, or a configuration of sqm."""
    try:
        devices = tc.imported(tc.read(path))
        tomllib.loads(tc.toml(devices, "1gbit"))
        links = tc.links(tc.read(path), rate="1gbit")
        flow = {"name": "f", "path": [*links][:1]}
        tc.export({"links": links, "duration": "1s", "flows": [flow]})
    except sj.InputError as error:
        raise sj.InputError(f"{path}: {error}") from None


def compared(text: str) -> None:
    """Read a list of disciplines as `compare --qdisc` does."""
    variants.variants(variants.split(text))


def described(text: str) -> None:
    """Read a discipline in our notation or tc's words as `tc diff` and `tc export` do."""
    tc.diff(tc.described(text), "droptail")
    tc.export(tc.described(text))


WHOLE: dict[str, Any] = {
    **tomllib.loads(SMALL),
    "duration": "1500ms",
    "warmup": "500ms",
    "sample": "50ms",
    "packet_log": True,
}
WHOLE["flows"] = [
    *WHOLE["flows"],
    {"name": "film", "path": ["up"], "source": "video"},
    {"name": "talk", "path": ["up"], "source": "call"},
    {"name": "answers", "path": ["up"], "count": 2, "source": "incast"},
]

TC_COMMANDS = """\
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit burst 15k
tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 20ms 1ms loss gemodel 1% 10% limit 1000
tc qdisc add dev eth0 parent 10:1 fq_codel limit 1000 target 5ms interval 100ms quantum 300 ecn
tc qdisc replace dev eth1 root cake bandwidth 20mbit diffserv4 nat overhead 44 rtt 50ms
tc qdisc add dev eth2 root tbf rate 1mbit burst 10k latency 50ms
"""

TC_SHOWN = """\
qdisc tbf 1: dev eth0 root refcnt 2 rate 5Mbit burst 15Kb lat 50ms
qdisc fq_codel 0: dev wlan0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms \
interval 100ms memory_limit 32Mb ecn drop_batch 64
qdisc red 8001: dev eth1 root refcnt 2 limit 400Kb min 30Kb max 90Kb ecn
qdisc cake 8002: dev eth2 root refcnt 2 bandwidth 10Mbit besteffort triple-isolate rtt 100ms raw
"""

TC_JSON = json.dumps(
    [
        {"kind": "tbf", "handle": "1:", "dev": "eth0", "root": True,
         "options": {"rate": 1250000, "burst": 15000, "lat": 50000}},
        {"kind": "codel", "handle": "2:", "dev": "eth0", "parent": "1:1",
         "options": {"limit": 1000, "target": 4999, "interval": 99999, "ecn": True}},
        {"kind": "cake", "handle": "8001:", "dev": "eth1", "root": True, "options": {
            "bandwidth": 2500000, "diffserv": "diffserv3", "flowmode": "triple-isolate",
            "nat": False, "rtt": 100000, "raw": False, "overhead": 18, "mpu": 64}},
    ]
)  # fmt: skip

SQM = """\
config queue 'eth1'
	option enabled '1'
	option interface 'eth1'
	option download '85000'
	option upload '10000'
	option qdisc 'fq_codel'
	option script 'simplest.qos'
	option linklayer 'ethernet'
	option overhead '44'

config queue
	option interface 'wan'
	option download '0'
	option upload '2000'
	option qdisc 'cake'
	option script 'piece_of_cake.qos'
	option linklayer 'atm'
	option overhead '40'
	option squash_ingress '1'
"""

NETWORKD = """\
[Match]
Name=eth0

[HierarchyTokenBucket]
Parent=root
Handle=1
DefaultClass=1

[HierarchyTokenBucketClass]
Parent=root
ClassId=1:1
Rate=20M

[FairQueueingControlledDelay]
Parent=1:1
PacketLimit=1000
TargetSec=10ms
MemoryLimitBytes=4M
"""

CONNECTION = """\
[connection]
id=home
interface-name=eth0

[tc]
qdisc.root=handle 8: fq_codel target 8000 limit 500 ecn
"""

INTERFACES = """\
auto eth0
iface eth0 inet dhcp
    up tc qdisc add dev $IFACE root handle 1: htb default 1
    up tc class add dev $IFACE parent 1: classid 1:1 htb rate 19mbit
    up tc qdisc add dev $IFACE parent 1:1 fq_codel limit 600
    down tc qdisc del dev $IFACE root
"""

STYLE = """\
axes.grid: True
lines.linestyle: --
font.size: 9.5
lines.linewidth: 1.2
figure.figsize: 6, 4
"""

DISCIPLINES = (
    "codel(target=15ms, interval=100ms, ecn=true, limit=300kB)", "fq_codel", "droptail(limit=5p)",
    "red(min_th=5p, max_th=15p, max_p=0.1)",
    "tc: cake bandwidth 5mbit diffserv4 rtt 50ms", "tc: fq_codel limit 1000 target 20ms ecn",
    "tc qdisc add dev eth0 root red limit 400kb min 30kb max 90kb avpkt 1000 burst 55",
    "sfq(quantum=500B)", "tbf(rate=5mbit, burst=10kB)",
)  # fmt: skip

LISTS = (
    "slow=red(min_th=5p, max_th=15p, max_p=0.1),droptail,codel(target=5ms)",
    "tc: fq_codel limit 1000,drr(weights=[1, 2, 3], flows=3, by=class),prio(flows=3)",
)

READERS: dict[str, Reader] = {
    "scenario.toml": Reader(
        written("case.toml", (EXAMPLES / "every-key.toml").read_text()), scenario, trees
    ),
    "scenario.json": Reader(written("case.json", json.dumps(WHOLE)), scenario, trees),
    "sweep.toml": Reader(
        written("sweep.toml", toml({**SWEEP, "scenario": SCENARIO})), swept, trees
    ),
    "sweep.toml until": Reader(
        written("sweep.toml", toml({"scenario": SCENARIO, "until": UNTIL,
                                    "axes": {"x.count": [1, 2]}})), swept, trees),
    "result": Reader(result_in, explained, frames, whole=True),
    "comparison.json": Reader(comparison_in, explained, trees, whole=True),
    "store": Reader(store_in, stored, frames, whole=True),
    "damaged store": Reader(store_in, damaged, whole=True, forgiving=True),
    "run --out": Reader(result_in, run_into, frames, whole=True, forgiving=True),
    "compare --out": Reader(comparison_in, compared_into, trees, whole=True, forgiving=True),
    "sweep --out": Reader(store_in, swept_into, frames, whole=True, forgiving=True),
    "evaluate --out": Reader(
        evaluation_in, evaluated_into, frames, whole=True, forgiving=True
    ),
    "evaluation": Reader(evaluation_in, evaluated, frames, whole=True),
    "--style": Reader(written("look.mplstyle", STYLE), styled),
    "link --json": Reader(
        written("link.json", json.dumps(report(), indent=2)), reported, trees
    ),
    "link trace CSV": Reader(written("rates.csv", RATES), linked),
    "link trace Mahimahi": Reader(written("up.trace", MOMENTS), linked),
    "link trace in bins": Reader(written("up.trace", MOMENTS), binned),
    "recommend --down": Reader(written("up.trace", MOMENTS), line_trace),
    "recommend --traffic": Reader(
        written("home.json", json.dumps(WHOLE)), traffic, trees
    ),
    "snapshot": Reader(saved, loaded),
    "topology HPCC": Reader(written("topology.txt", HPCC), topology),
    "topology htsim": Reader(written("fat.topo", HTSIM), topology),
    "topology Parsimon": Reader(written("network.json", json.dumps(NETWORK)), topology),
    "topology of a cluster": Reader(written("cluster.json", json.dumps(CLUSTER)), topology),
    "flow list JSON": Reader(written("flows.json", json.dumps(PARSIMON_FLOWS)), listed),
    **{
        f"flow list {form}": Reader(written("flows", text), listed)
        for form, text in FLOW_LISTS.items()
    },
    "packet trace": Reader(written("packets.csv", PACKETS), sent),
    "replay": Reader(written("arrivals.csv", ARRIVALS), replayed),
    "replay pcap": Reader(captured("pcap"), replayed),
    "replay pcapng": Reader(captured("pcapng"), replayed),
    "packet trace pcap": Reader(captured("pcap"), sent),
    "replay --follow": Reader(written("decisions.csv", DECISIONS), followed),
    "tc commands": Reader(written("shape.sh", TC_COMMANDS), imported),
    "tc qdisc show": Reader(written("shown.txt", TC_SHOWN), imported),
    "tc -j qdisc show": Reader(written("shown.json", TC_JSON), imported, trees),
    "sqm": Reader(written("sqm", SQM), imported),
    "networkd": Reader(written("e.network", NETWORKD), imported),
    "networkmanager": Reader(written("e.nmconnection", CONNECTION), imported),
    "ifupdown": Reader(written("interfaces", INTERFACES), imported),
    "compare --qdisc": Reader(use=compared, texts=LISTS),
    "tc diff": Reader(use=described, texts=DISCIPLINES),
}  # fmt: skip
"""Readers by what they read."""
