"""Effect of one change at a time on the results of sojourn."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from sojourn_lab.validation import systems
from sojourn_lab.validation.cases import File, Metric, cases, read
from sojourn_lab.validation.files import BULK_DATA, FAIR3, FAIR5, FTP_ONLY, RERUN, TWO_WAY
from sojourn_lab.validation.report import mean, table
from sojourn_lab.validation.simulate import simulate
from sojourn_lab.validation.statistics import Array, compare, compare_in_pairs, half_width
from sojourn_lab.validation.switch import switch
from sojourn_lab.validation.systems import Table

Tables = tuple[str, dict[str, str]]
"""Section of the page, and its numbers for `causes.md`."""

ACCESS = """### Effect of access links and start times

The set-up of `hred_ftp_only`; the runs of each pair have the same seed and propagation times. The
changes show the effect that an error in access links or start times would have.

"""

BULK = """### Loss of UDP in `td_red_ftp`

Tail drop; each line is one change of the documented set-up, {seeds} runs each. The first line is
the recording of ns-2.

"""

SIDES = """### Location of the receivers in `drr_dumbbell`

The documented set-up (receivers on the router); the same with the propagation times of receivers on
hosts; and receivers on hosts. DropTail, packets of 1000 B, {seeds} runs each; one recorded run of
ns-2.

"""

SETS = """### Effect of the set of propagation times in `hred_ftp_only`

DropTail, 30 flows: {sets} sets with {runs} runs each, sorted by their mean queue. Only the set
changes. The recording of ns-2 has three runs with one set.

"""


HOME = """### Effect of the return path of ACKs

ACKs that cross only the other direction of the bottleneck, against ACKs that also cross the links
of receiver and sender, as in ns-2 and in every case of this page; {seeds} runs each.

"""


QUEUES = """### Rows of ns-2's FQ against the nearest schedulers

sojourn does not have ns-2's FQ (see [Omitted rows](#omitted-rows)). Each flow has the buffer of its
row; {seeds} runs each.

"""


def experiments(seeds: int | None = None) -> Tables:
    """Return the tables, and the numbers for `causes.md`."""
    text, numbers = "", dict[str, str]()
    for part in (home, bulk, sides, sets, switch, queues, access):
        more, more_numbers = part(seeds)
        text += more + "\n"
        numbers |= more_numbers
    return text.removesuffix("\n"), numbers


def _cells(metrics: Sequence[Metric], values: Array) -> list[str]:
    """Format the means of metrics over runs."""
    pairs = zip(metrics, values.T, strict=True)
    return [mean(float(v.mean()), half_width(v), m.form) for m, v in pairs]


def _values(metrics: Sequence[Metric], rows: Sequence[Mapping[str, str]]) -> Array:
    """Read metrics of recorded runs."""
    return np.array([[float(row[m.column]) for m in metrics] for row in rows])


def home(seeds: int | None = None) -> Tables:
    """Omit the links of receiver and sender from the return path of ACKs."""
    lines, numbers = [], dict[str, str]()
    for name, chosen, columns in (
        ("fair", {"topo": "3u"}, ("f1", "f3", "jain")),
        ("ftp_only", {"n": "300", "q": "RED"}, ("qmean_B", "loss")),
    ):
        file = next(f for f in RERUN if f.name == f"reruns/{name}")
        case = next(c for c in cases(file) if chosen.items() <= c.key.items())
        metrics = [m for m in file.metrics if m.column in columns]
        chosen_seeds = case.seeds[: seeds or 20]
        for key, label, change in (
            ("only", "the bottleneck", _straight),
            ("both", "all three links", lambda s: s),
        ):
            scenarios = [change(file.scenario(seed, case.key)) for seed in chosen_seeds]
            values = simulate(scenarios, [m.ours for m in metrics])
            for m, v in zip(metrics, values.T, strict=True):
                theirs = case.theirs(m)
                c = compare_in_pairs(theirs[: len(v)], v) if "n" in chosen else compare(theirs, v)
                cells = [mean(c.theirs, c.theirs_half, m.form), mean(c.ours, c.ours_half, m.form)]
                difference = f"{c.difference:+{m.form}} ± {c.half:{m.form}}"
                lines.append([f"{file.title}: {case.name}", label, m.label, *cells, difference])
                numbers[f"home_{name}_{m.column}_{key}"] = difference
    head = ["case", "ACKs cross", "metric", "rerun of ns-2", "sojourn", "difference"]
    return HOME.format(seeds=seeds or "10 or 20") + table(head, lines), numbers


def _straight(s: Table) -> Table:
    for f in s["flows"]:
        if "tcp" in f:
            f["return_path"] = ["back"]
    return s


def bulk(seeds: int | None = None) -> Tables:
    """Change one thing at a time in the set-up of UDP with SACK."""
    names = ("udp_loss", "qstd_p", "delay_ms_std", "loss", "mean_run")
    metrics = [m for m in BULK_DATA.metrics if m.column in names]
    lines, numbers = [], dict[str, str]()
    for n in (16, 64, 256):
        rows = [r for r in read(BULK_DATA) if r["q"] == "TD" and r["n"] == str(n)]
        lines.append([str(n), "recorded", *_cells(metrics, _values(metrics, rows))])
        for key, (label, change) in _BULK.items():
            scenarios = [change(_bulk(seed, n)) for seed in range(seeds or 10)]
            values = simulate(scenarios, [m.ours for m in metrics])
            lines.append(["", label, *_cells(metrics, values)])
            for m, v in zip(metrics, values.T, strict=True):
                numbers[f"bulk_{key}_{n}_{m.column}"] = f"{v.mean():{m.form}}"
    head = ["flows", "change", *(m.label for m in metrics)]
    return BULK.format(seeds=seeds or 10) + table(head, lines), numbers


def _bulk(seed: int, n: int) -> Table:
    return systems.bulk_data(seed, "TD", n, 300, "Sack1")


def _trunk(rate: str) -> Callable[[Table], Table]:
    def change(s: Table) -> Table:
        more = systems.link(rate, qdisc=systems.WIDE)
        for f in s["flows"]:
            f["path"] = [f["path"][0], "trunk", *f["path"][1:]]
        return s | {"links": s["links"] | {"trunk": more}}

    return change


def _access(rate: str) -> Callable[[Table], Table]:
    def change(s: Table) -> Table:
        links = {k: v | {"rate": rate} if "access" in k else v for k, v in s["links"].items()}
        return s | {"links": links}

    return change


def _own_links(s: Table) -> Table:
    links = dict(s["links"])
    for f in s["flows"]:
        if "tcp" not in f:
            links[f"own-{f['name']}"] = links[f["path"][0]]
            f["path"] = [f"own-{f['name']}", *f["path"][1:]]
    return s | {"links": links}


def _jitter(share: float) -> Callable[[Table], Table]:
    def change(s: Table) -> Table:
        for f in s["flows"]:
            if "tcp" not in f:
                f["source"] = f["source"] | {"jitter": share}
        return s

    return change


def _one_draw(s: Table) -> Table:
    tcps = [f for f in s["flows"] if "tcp" in f]
    sizes = np.random.default_rng(0).integers(1400, 1628, len(tcps), endpoint=True)
    for f, size in zip(tcps, sizes, strict=True):
        f["tcp"]["packet"] = f"{size}B"
    return s


def _off_the_grid(s: Table) -> Table:
    delays = (10_330, 19_790, 30_510, 39_120)
    links = dict(s["links"])
    for host, delay in enumerate(delays):
        links[f"access-{host}"] = links[f"access-{host}"] | {"delay": f"{delay}us"}
        for f in s["flows"]:
            if f["path"][0] == f"access-{host}" and "rtt" in f:
                f["rtt"] = f"{2 * (delay + 50_000) + 200}us"
    return s | {"links": links}


_BULK: dict[str, tuple[str, Callable[[Table], Table]]] = {
    "described": ("none", lambda s: s),
    "own": ("UDP behind separate access links", _own_links),
    "trunk200": ("one more link, 200 Mbit/s", _trunk("200mbit")),
    "trunk": ("one more link, 100 Mbit/s", _trunk("100mbit")),
    "access": ("access links of 40 Mbit/s", _access("40mbit")),
    "even": ("UDP without jitter", _jitter(0.0)),
    "wild": ("UDP with gaps from 0 to twice the mean", _jitter(1.0)),
    "draw": ("same packet sizes in all runs", _one_draw),
    "grid": ("access delays not multiples of 10 ms", _off_the_grid),
    "early": ("measured from 11 s on", lambda s: s | {"warmup": "11s"}),
}


def sides(seeds: int | None = None) -> Tables:
    """Move the receivers of the dumbbell, or change only their distance."""
    names = ("drops_per_s", "loss", "util", "fwd_goodput_Mbps", "jain_fwd")
    metrics = [m for m in TWO_WAY.metrics if m.column in names]
    lines, numbers = [], dict[str, str]()
    for mbps in (2, 10, 100):
        chosen = {"q": "DropTail", "bw_Mbps": str(mbps), "mtu": "1000"}
        rows = [r for r in read(TWO_WAY) if all(r[k] == v for k, v in chosen.items())]
        lines.append([str(mbps), "recorded", *_cells(metrics, _values(metrics, rows))])
        for key, label, change in (
            ("described", "none", lambda s: s),
            ("far", "propagation times", _far),
            ("hosts", "receivers on the hosts", None),
        ):
            build = [
                systems.two_way(seed, mbps, 1000, 100, hosts=change is None) | {"packet_log": False}
                for seed in range(seeds or 10)
            ]
            values = simulate(
                [change(s) if change else s for s in build], [m.ours for m in metrics]
            )
            lines.append(["", label, *_cells(metrics, values)])
            for m, v in zip(metrics, values.T, strict=True):
                numbers[f"sides_{key}_{mbps}_{m.column}"] = f"{v.mean():{m.form}}"
    head = ["Mbit/s", "change", *(m.label for m in metrics)]
    return SIDES.format(seeds=seeds or 10) + table(head, lines), numbers


def _far(s: Table) -> Table:
    for f in s["flows"]:
        if "tcp" in f:
            f["rtt"] = f"{20 + 8 * int(f['name'].split('-')[1])}ms"
    return s


def sets(seeds: int | None = None) -> Tables:
    """Change the set of propagation times of 30 flows."""
    names = ("qmean_B", "util", "ftp_goodput_frac", "jain_ftp")
    metrics = [m for m in FTP_ONLY.metrics if m.column in names]
    rows = [r for r in read(FTP_ONLY) if r["q"] == "DropTail" and r["n"] == "30"]
    number, runs = min(2 * (seeds or 10), 20), 3
    scenarios = [_set(k, run) for k in range(number) for run in range(runs)]
    values = simulate(scenarios, [m.ours for m in metrics]).reshape(number, runs, -1)
    values = values[values[:, :, 0].mean(axis=1).argsort()]
    recorded = _values(metrics, rows)
    thirds = np.array_split(values, 4)
    labels = ["shortest queues (quarter)", "second", "third", "longest queues (quarter)"]
    lines = [["recorded", *_cells(metrics, recorded)]]
    for label, some in zip(labels, thirds, strict=True):
        lines.append([label, *_cells(metrics, some.reshape(-1, len(metrics)))])
    goodput = values[:, :, 2]
    numbers = {
        "sets": str(number),
        "sets_recorded_queue": f"{recorded[:, 0].mean():.0f}",
        "sets_shortest_queue": f"{values[0, :, 0].mean():.0f}",
        "sets_longest_queue": f"{values[-1, :, 0].mean():.0f}",
        "sets_recorded_goodput": f"{recorded[:, 2].mean():.4f}",
        "sets_short_goodput": f"{goodput[: number // 4].mean():.4f}",
        "sets_long_goodput": f"{goodput[-(number // 4) :].mean():.4f}",
        "sets_least_goodput": f"{goodput.min():.4f}",
        "sets_linked": f"{np.corrcoef(values[:, :, 0].mean(1), goodput.mean(1))[0, 1]:.2f}",
    }
    head = ["sets", *(m.label for m in metrics)]
    return SETS.format(sets=number, runs=runs) + table(head, lines), numbers


def _set(k: int, run: int) -> Table:
    s = systems.ftp_only(1000 * run + k, "DropTail", 30, 300_000, "Newreno")
    rtts = np.random.default_rng(1000 + k).uniform(0.040, 0.200, 30)
    for f, rtt in zip(s["flows"], rtts, strict=True):
        f["rtt"] = f"{rtt * 1e9:.0f}ns"
    return s


def queues(seeds: int | None = None) -> Tables:
    """Simulate the rows of ns-2's FQ with the two nearest schedulers."""
    rows = [row for file in (FAIR3, FAIR5) for row in read(file) if row["q"] == "FQ"]
    kinds: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in rows:
        kinds.setdefault((row["topo"], row["buf"], row["share"]), []).append(row)
    lines = []
    for (topo, buf, share), runs in kinds.items():
        if topo == "5" and buf not in ("5000", "20000", "50000", "150000"):
            continue
        file = FAIR5 if topo == "5" else FAIR3
        limits = " ".join(f"{float(bytes_):.0f}B" for bytes_ in share.split("/"))
        recorded = _cells(file.metrics, _values(file.metrics, runs))
        cells = [
            _cells(file.metrics, _with_queues(file, topo, buf, law, limits, seeds))
            for law in ("wfq", "scfq")
        ]
        for i, m in enumerate(file.metrics):
            first = f"{topo}, {limits}" if i == 0 else ""
            lines.append([first, m.label, recorded[i], *(c[i] for c in cells)])
    head = ["case", "metric", "recorded, FQ", "sojourn, wfq", "sojourn, scfq"]
    return QUEUES.format(seeds=seeds or 5) + table(head, lines), {}


def _with_queues(
    file: File, topo: str, buf: str, law: str, limits: str, seeds: int | None
) -> Array:
    """Simulate a row of FQ under `law` with a buffer per flow."""
    scenarios = []
    for seed in range(seeds or 5):
        scenario = systems.fair(seed, topo, "DRR", int(buf))
        qdisc = {"name": law, "limit": f"{buf}B", "limits": limits}
        scenario["links"]["bottleneck"]["qdisc"] = qdisc
        scenarios.append(scenario)
    return simulate(scenarios, [m.ours for m in file.metrics])


def access(seeds: int | None = None) -> Tables:
    """Change access links and start times of long flows."""
    head = ["case", "change", "metric", "before", "after", "difference"]
    lines = []
    for q, n in (("DropTail", 30), ("RED", 30), ("DropTail", 300), ("RED", 300)):
        old = _three([_ftp_only(seed, q, n) for seed in range(seeds or 10)])
        build = partial(_ftp_only, q=q, n=n)
        changes: list[tuple[str, Callable[[int], Table]]] = [
            ("no access links", partial(build, access="")),
            ("access links of 45 Mbit/s", partial(build, access="45mbit")),
            ("simultaneous start", partial(_at_once, q=q, n=n)),
        ]
        for changed, change in changes:
            new = _three([change(seed) for seed in range(seeds or 10)])
            lines += _lines(f"{q} n {n}", changed, old, new)
    return ACCESS + table(head, lines), {}


def _ftp_only(seed: int, q: str, n: int, access: str = "100mbit") -> Table:
    return systems.ftp_only(seed, q, n, 300_000, "Newreno", access)


def _at_once(seed: int, q: str, n: int) -> Table:
    scenario = _ftp_only(seed, q, n)
    flows = [f | {"source": {"name": "bulk"}} for f in scenario["flows"]]
    return scenario | {"flows": flows}


THREE = [m for m in FTP_ONLY.metrics if m.column in ("qmean_B", "loss", "util")]


def _three(scenarios: Sequence[Table]) -> Array:
    return simulate(scenarios, [m.ours for m in THREE]).T


def _lines(case: str, changed: str, old: Array, new: Array) -> list[list[str]]:
    lines = []
    for i, m in enumerate(THREE):
        c = compare_in_pairs(old[i], new[i])
        cells = [f"{c.theirs:{m.form}}", f"{c.ours:{m.form}}"]
        difference = f"{c.difference:+{m.form}} ± {c.half:{m.form}}"
        lines.append(
            [case if i == 0 else "", changed if i == 0 else "", m.label, *cells, difference]
        )
    return lines
