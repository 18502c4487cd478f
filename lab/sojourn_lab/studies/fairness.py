"""Fairness: the experiments of the EWFQ paper, and eight disciplines with an unresponsive flow.

`make studies` writes reports/fairness.md. All seeds are fixed.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sojourn as sj
from sojourn.result.select import wire_factor
from sojourn_lab import ROOT

PAGE = ROOT / "reports" / "fairness.md"
Table = dict[str, Any]

TCP = {"name": "newreno", "profile": "ns2", "packet": "1000B", "receive_window": "10000p"}
NETWORKS = {
    "Uniform": ([10, 10, 1], "5mbit", "10mbit", "3330kbit"),
    "Varied": ([50, 100, 1], "5mbit", "10mbit", "3330kbit"),
    "Five": ([2, 20, 100, 200, 50], "10mbit", "2500kbit", "2500kbit"),
}
"""Access delays in ms (the last source is UDP), bottleneck, access rate, rate of the UDP source."""


def network(name: str, qdisc: Table, seed: int, tcp: Table = TCP) -> Table:
    """Return the scenario of a network of the paper, with `qdisc` at its bottleneck."""
    delays, rate, access, udp = NETWORKS[name]
    wide = {"name": "droptail", "limit": "100000p"}
    links: Table = {"bottleneck": {"rate": rate, "delay": "1ms", "qdisc": qdisc}}
    flows = []
    for i, delay in enumerate(delays):
        links[f"access-{i}"] = {"rate": access, "delay": f"{delay}ms", "qdisc": wide}
        flow: Table = {"name": f"s{i + 1}", "path": [f"access-{i}", "bottleneck"]}
        if i == len(delays) - 1:
            flow["source"] = {"name": "cbr", "rate": udp, "packet": "1000B", "jitter": 0.5}
        else:
            flow |= {"tcp": tcp, "rtt": f"{2 * (delay + 2)}ms"}
            flow["source"] = {"name": "bulk", "start": "uniform(0s, 1s)"}
        flows.append(flow)
    return {"duration": "200s", "warmup": "50s", "seed": seed, "links": links, "flows": flows}


def ewfq(name: str, kb: int, **changes: Any) -> Table:
    """Return EWFQ with the parameters of the paper, and the UDP class as unresponsive."""
    n = len(NETWORKS[name][0])
    rtt = "500ms" if name == "Five" else "250ms"
    responsive = [1] * (n - 1) + [0]
    own = {"flows": n, "expected": n, "responsive": responsive, "rtt": rtt, "limit": f"{kb}kB"}
    return {"name": "ewfq", **own, **changes}


def wfq(name: str, kb: int, shares: Sequence[float] | None = None) -> Table:
    """Return WFQ with a buffer per class: equal parts of `kb` kB, or `shares` in kB."""
    n = len(NETWORKS[name][0])
    limits = [f"{int(1000 * s)}B" for s in shares or [kb / n] * n]
    own = {"flows": n, "limits": limits, "limit": f"{2 * kb}kB", "full": "arrival"}
    return {"name": "wfq", **own}


def goodputs(result: sj.Result) -> np.ndarray[Any, Any]:
    """Return the throughput of each flow in Mbit/s, headers included, as in the paper."""

    def on_wire(flow: Table) -> float:
        # The CBR sources here send 1000 bytes with 28 of headers.
        return wire_factor(result, flow["group"]) if flow["kind"] == "tcp" else 1000 / 972

    flows = result.summary["flows"]
    return np.array([flow["goodput_bps"] * on_wire(flow) / 1e6 for flow in flows])


def jain(x: np.ndarray[Any, Any]) -> float:
    """Return Jain's fairness index."""
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def measured(scenarios: Iterable[Table]) -> tuple[float, float, float, np.ndarray[Any, Any]]:
    """Run scenarios; return mean and standard deviation of Jain's index, and mean throughputs.

    The throughputs are the total and the flows', in Mbit/s.
    """
    each = np.array([goodputs(result) for result in sj.simulate_many(list(scenarios))])
    index = np.array([jain(x) for x in each])
    return index.mean(), index.std(ddof=1), each.sum(axis=1).mean(), each.mean(axis=0)


def row(label: str, name: str, qdisc: Table, seeds: int, paper: str, tcp: Table = TCP) -> str:
    """Run a discipline in a network and return its row of the table."""
    print(label, file=sys.stderr)
    index, spread, total, flows = measured(
        network(name, qdisc, seed, tcp) for seed in range(1, seeds + 1)
    )
    shares = " / ".join(f"{x:.2f}" for x in flows)
    return f"| {label} | {index:.4f} ± {spread:.4f} | {paper} | {total:.2f} | {shares} |"


def three_nodes(seeds: int) -> list[str]:
    """Run figures 2 and 3: three nodes, 30 kB."""
    lines = [
        "| network, discipline | Jain's index | paper | total, Mbit/s | each, Mbit/s |",
        "|---|---|---|---|---|",
    ]
    reported = {"Uniform": ("0.9999", "0.9998", "0.9963"), "Varied": ("0.9978", "0.9733", "0.9765")}
    for name, (own, even, varied) in reported.items():
        lines += [
            row(f"{name}, EWFQ", name, ewfq(name, 30), seeds, own),
            row(f"{name}, WFQ 10/10/10 kB", name, wfq(name, 30), seeds, even),
            row(f"{name}, WFQ 15/5/10 kB", name, wfq(name, 30, [15, 5, 10]), seeds, varied),
        ]
    return lines


def sweep(seeds: int) -> list[str]:
    """Run figure 4: five nodes, buffers of 5 to 150 kB."""
    lines = [
        "| buffer, kB | EWFQ: Jain | total, Mbit/s | WFQ: Jain | total, Mbit/s |",
        "|---|---|---|---|---|",
    ]
    for kb in (5, 10, 20, 30, 60, 90, 120, 150):
        print(f"sweep {kb} kB", file=sys.stderr)
        cells = []
        for qdisc in (ewfq("Five", kb), wfq("Five", kb)):
            runs = (network("Five", qdisc, seed) for seed in range(1, seeds + 1))
            index, spread, total, _ = measured(runs)
            cells.append(f"{index:.4f} ± {spread:.4f} | {total:.2f}")
        lines.append(f"| {kb} | {' | '.join(cells)} |")
    return lines


def causes(seeds: int) -> list[str]:
    """Change one setting at a time, in the Varied network and at 10 kB of the sweep."""
    lines = [
        "| what is changed | Jain's index | paper | total, Mbit/s | each, Mbit/s |",
        "|---|---|---|---|---|",
    ]
    sack = TCP | {"name": "sack"}
    rfc = TCP | {"profile": "rfc"}
    small = TCP | {"packet": "500B"}
    for name, kb, paper in (("Varied", 30, "0.9978"), ("Five", 10, "about 1")):
        base = ewfq(name, kb)
        cases: list[tuple[str, Table, Table]] = [
            ("nothing", base, TCP),
            ("SACK in place of NewReno", base, sack),
            ("TCP of the RFCs (delayed acks, bytes)", base, rfc),
            ("packets of 500 B", base, small),
            ("no cache (k = 0)", ewfq(name, kb, k=0), TCP),
            ("every byte counted (p = 1, k = 0)", ewfq(name, kb, k=0, p=1), TCP),
            ("RTT_o doubled", ewfq(name, kb, rtt="500ms" if name == "Varied" else "1s"), TCP),
            ("step of m_fair by 1/1000", ewfq(name, kb, mfair_gain=0.001), TCP),
            ("UDP taken for responsive", ewfq(name, kb, responsive=[1]), TCP),
        ]
        for what, qdisc, tcp in cases:
            lines.append(row(f"{name}, {kb} kB: {what}", name, qdisc, seeds, paper, tcp))
    return lines


def shared(qdisc: Table, flows: list[Table], seed: int) -> Table:
    """Return the scenario of one 10 Mbit/s link shared by `flows`."""
    link = {"rate": "10mbit", "delay": "5ms", "qdisc": qdisc}
    own = [flow | {"path": ["link"]} for flow in flows]
    warm = {"duration": "100s", "warmup": "20s", "seed": seed}
    return {**warm, "links": {"link": link}, "flows": own}


EIGHT: dict[str, Callable[[int], Table]] = {
    "FIFO": lambda n: {"name": "droptail", "limit": "100kB"},
    "RED": lambda n: {
        "name": "red",
        "limit": "100kB",
        "min_th": "20kB",
        "max_th": "60kB",
        "gentle": True,
        "packet": "1000B",
    },
    "CHOKe": lambda n: {
        "name": "choke",
        "limit": "100kB",
        "min_th": "20kB",
        "max_th": "60kB",
        "packet": "1000B",
    },
    "AFD": lambda n: {"name": "afd", "limit": "100kB"},
    "DRR": lambda n: {"name": "drr", "limit": "100kB", "flows": 2048},
    "WFQ": lambda n: {"name": "wfq", "limit": "100kB", "flows": 2048},
    "FQ-CoDel": lambda n: {"name": "fq_codel", "flows": 1024},
    "EWFQ": lambda n: {
        "name": "ewfq",
        "limit": "100kB",
        "flows": 2048,
        "expected": n,
        "responsive": [1] * (n - 1) + [0],
    },
}
"""Eight disciplines with 100 kB for n long flows, the last of which is unresponsive."""


def misbehaviour(seeds: int) -> list[str]:
    """Run nine TCP flows with a UDP flow that sends ten times its share."""
    rates = {"name": "cbr", "rate": "10mbit", "packet": "1000B", "jitter": 0.5}
    flows: list[Table] = [
        {
            "name": "tcp",
            "count": 9,
            "rtt": "uniform(20ms, 100ms)",
            "tcp": TCP,
            "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
        },
        {"name": "udp", "source": rates},
    ]
    lines = [
        "| discipline | UDP, Mbit/s | TCP each, Mbit/s | Jain's index | median delay, ms |",
        "|---|---|---|---|---|",
    ]
    for label, qdisc in EIGHT.items():
        print(label, file=sys.stderr)
        runs = sj.simulate_many([shared(qdisc(10), flows, s) for s in range(1, seeds + 1)])
        each = np.array([goodputs(run) for run in runs])
        delay = np.mean([run.summary["links"]["link"]["sojourn_p50_s"] for run in runs]) * 1e3
        index = np.mean([jain(x) for x in each])
        lines.append(
            f"| {label} | {each[:, -1].mean():.2f} | {each[:, :-1].mean():.2f} "
            f"| {index:.3f} | {delay:.1f} |"
        )
    return lines


def mice(seeds: int) -> list[str]:
    """Run a thousand short transfers with four long flows."""
    flows: list[Table] = [
        {
            "name": "elephant",
            "count": 4,
            "rtt": "uniform(20ms, 100ms)",
            "tcp": TCP,
            "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
        },
        {
            "name": "mouse",
            "count": 1000,
            "rtt": "uniform(20ms, 100ms)",
            "tcp": TCP,
            "source": {
                "name": "transfers",
                "size": "20kB",
                "number": 1,
                "start": "uniform(20s, 90s)",
            },
        },
    ]
    lines = [
        "| discipline | mice: median, ms | 99th percentile, ms | elephants, Mbit/s "
        "| their Jain's index |",
        "|---|---|---|---|---|",
    ]
    for label, qdisc in EIGHT.items():
        print(label, file=sys.stderr)
        scenarios = [
            shared(qdisc(5) | ({"responsive": [1]} if label == "EWFQ" else {}), flows, s)
            for s in range(1, seeds + 1)
        ]
        runs = sj.simulate_many(scenarios)
        took = np.concatenate([run.completions["duration_s"] for run in runs]) * 1e3
        each = np.array([goodputs(run)[:4] for run in runs])
        lines.append(
            f"| {label} | {np.median(took):.0f} | {np.percentile(took, 99):.0f} "
            f"| {each.sum(axis=1).mean():.2f} | {np.mean([jain(x) for x in each]):.3f} |"
        )
    return lines


def stages() -> str:
    """Return the table of the match-hit cache, which a Rust example prints."""
    command = ["cargo", "run", "--quiet", "--release", "-p", "sojourn-aqm"]
    command += ["--example", "match_hit"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Run all experiments and write the page."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    text = (Path(__file__).parent / "fairness.md").read_text()
    parts = {
        "three": three_nodes,
        "sweep": sweep,
        "causes": causes,
        "misbehaviour": misbehaviour,
        "mice": mice,
    }
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", "\n".join(part(seeds)))

    text = text.replace("<!-- stages -->", stages())
    PAGE.write_text(text.replace("<!-- seeds -->", str(seeds)))


if __name__ == "__main__":
    main()
