"""Trees serve packets in the kernel's order: hfsc, drr, multiq, prio with filters, below tbf."""

import random
from pathlib import Path
from typing import Any

import pytest

from sojourn.engines.replay import replay
from support import uml

uml.require()

RATE = "200kbit"
"""Rate of the shaper: 60 ms per packet of 1500 bytes."""

FRAMES = 80

Case = dict[str, Any]


def frames(
    draw: random.Random, classes: list[tuple[int, int, int]], least: int = 64
) -> list[list[int]]:
    """Return frames (priority, DSCP, length) of random classes, and their class here."""
    rows = []
    for i in range(FRAMES):
        priority, dscp, number = draw.choice(classes)
        length = 1500 if i < 2 else draw.randint(least, 1500)
        rows.append([priority, dscp, length, number])
    return rows


def hfsc(draw: random.Random) -> Case:
    """Return a random tree of hfsc with link-share curves, whose root class has an upper limit."""
    n = draw.randint(4, 12)
    parents = [0, *(draw.randint(1, i) for i in range(1, n))]
    depth = [1]
    for i in range(1, n):
        if depth[parents[i] - 1] == 4:
            parents[i] = 1
        depth.append(depth[parents[i] - 1] + 1)
    lines = ["tc qdisc add dev dum0 root handle 1: hfsc default 999"]
    curves = []
    for i, parent in enumerate(parents):
        m1, m2 = draw.randint(8, 900), draw.randint(8, 900)
        d = draw.choice([0, 0, draw.randint(1, 300)])
        curves.append(f"{m1}kbit/{d}ms/{m2}kbit" if d else f"{m2}kbit")
        words = f"ls m1 {m1}kbit d {d}ms m2 {m2}kbit" if d else f"ls m2 {m2}kbit"
        words += f" ul m2 {RATE}" * (i == 0)
        head = (
            f"tc class add dev dum0 parent 1:{f'{parent:x}' if parent else ''} classid 1:{i + 1:x}"
        )
        lines.append(f"{head} hfsc {words}")
    leaves = [i + 1 for i in range(n) if i + 1 not in parents]
    table = {"name": "hfsc", "ls": curves, "ul": [RATE], "parents": parents}
    return {
        "lines": lines,
        "qdisc": table,
        "frames": frames(draw, [((1 << 16) + leaf, 0, leaf) for leaf in leaves]),
    }


def real_time(draw: random.Random) -> Case:
    """Return hfsc with real-time curves of its leaves below a class with an upper limit."""
    n = draw.randint(2, 6)
    lines = [
        "tc qdisc add dev dum0 root handle 1: hfsc default 999",
        f"tc class add dev dum0 parent 1: classid 1:1 hfsc ls m2 {RATE} ul m2 {RATE}",
    ]
    ls, rt = [RATE], ["none"]
    for minor in range(2, n + 2):
        m1, m2, d = draw.randint(5, 120), draw.randint(5, 60), draw.choice([0, 100, 300, 700])
        share = draw.randint(8, 90)
        real = draw.random() < 0.7
        rt.append((f"{m1}kbit/{d}ms/{m2}kbit" if d else f"{m2}kbit") if real else "none")
        ls.append(f"{share}kbit")
        words = f"rt m1 {m1}kbit d {d}ms m2 {m2}kbit " if d else f"rt m2 {m2}kbit "
        lines.append(
            f"tc class add dev dum0 parent 1:1 classid 1:{minor:x} hfsc "
            f"{words * real}ls m2 {share}kbit"
        )
    table = {"name": "hfsc", "ls": ls, "rt": rt, "ul": [RATE]}
    classes = [((1 << 16) + minor, 0, minor) for minor in range(2, n + 2)]
    return {"lines": lines, "qdisc": table, "frames": frames(draw, classes), "late": 15e3}


def shaped(lines: list[str], child: dict[str, Any]) -> dict[str, Any]:
    """Return `child` below the only class of htb; `lines` make it with the handle 20:."""
    start = [
        "tc qdisc add dev dum0 root handle 1: htb default 1",
        f"tc class add dev dum0 parent 1: classid 1:1 htb rate {RATE} burst 1600 cburst 1600",
    ]
    return {
        "lines": start + lines,
        "qdisc": {"name": "htb", "rates": [RATE], "ceils": [RATE], "children": [child]},
    }


def drr(draw: random.Random) -> Case:
    """Return drr with random quanta below htb."""
    weights = [draw.randint(1, 30) for _ in range(draw.randint(2, 8))]
    lines = ["tc qdisc add dev dum0 parent 1:1 handle 20: drr"]
    lines += [
        f"tc class add dev dum0 parent 20: classid 20:{i + 1:x} drr quantum {100 * weight}"
        for i, weight in enumerate(weights)
    ]
    child = {"name": "drr", "by": "class", "flows": len(weights), "quantum": "100B"}
    child |= {"weights": weights, "children": ["droptail"]}
    classes = [((0x20 << 16) + i + 1, 0, i) for i in range(len(weights))]
    return shaped(lines, child) | {"frames": frames(draw, classes)}


def filtered(draw: random.Random) -> Case:
    """Return prio with a random order of filters by DSCP, below htb."""
    bands = draw.randint(2, 6)
    codes = draw.sample(range(64), 6)
    rules = [(code, draw.randrange(bands)) for code in draw.sample(codes, 4)]
    lines = [f"tc qdisc add dev dum0 parent 1:1 handle 20: prio bands {bands}"]
    lines[0] += " priomap" + f" {bands - 1}" * 16
    lines += [
        f"tc filter add dev dum0 parent 20: protocol ip prio {i + 1} u32 "
        f"match ip dsfield {code << 2:#x} 0xfc flowid 20:{band + 1:x}"
        for i, (code, band) in enumerate(rules)
    ]
    child = {"name": "prio", "flows": bands, "priomap": [bands - 1] * 16}
    child |= {"children": ["droptail"]}
    child["filters"] = [{"to": band, "dscp": code} for code, band in rules]
    return shaped(lines, child) | {"frames": frames(draw, [(0, code, code) for code in codes])}


QUEUES = 6
"""Transmit queues of the device."""


def turns(draw: random.Random) -> Case:
    """Return multiq below htb, with a random order of filters that choose the queue."""
    codes = draw.sample(range(64), 8)
    rules = [(code, draw.randrange(QUEUES)) for code in codes]
    lines = ["tc qdisc add dev dum0 parent 1:1 handle 20: multiq"]
    lines += [
        f"tc filter add dev dum0 parent 20: protocol ip prio {i + 1} u32 "
        f"match ip dsfield {code << 2:#x} 0xfc action skbedit queue_mapping {band}"
        for i, (code, band) in enumerate(rules)
    ]
    child = {"name": "multiq", "flows": QUEUES, "children": ["droptail"]}
    child["filters"] = [{"to": band, "dscp": code} for code, band in rules]
    return shaped(lines, child) | {"frames": frames(draw, [(0, code, code) for code in codes])}


BELOW = {
    "pfifo": "droptail",
    "pfifo_head_drop": "droptail(policy=head)",
    "codel target 9s": "codel(variant=linux, target=9s)",
    "pie": "pie(variant=linux)",
    "fq_codel target 9s": "fq_codel(variant=linux, target=9s)",
    "sfq": "sfq(variant=linux)",
    "fq": "fq",
    "hhf": "hhf",
}
"""Qdiscs with a limit in packets, and their disciplines; all frames are of one flow."""

SLOW, LONG = "100kbit", 900
"""Rate of a shaper that has sent one frame only when the last one arrives, if none is shorter."""


def below_tbf(child: str, draw: random.Random) -> Case:
    """Return a full discipline below tbf, whose next packet was looked at before it was full."""
    limit = draw.randint(3, 20)
    lines = [f"tc qdisc add dev dum0 parent 1:1 handle 20: {child} limit {limit}"]
    name, _, rest = BELOW[child].partition("(")
    spec = f"{name}(limit={limit}p, {rest}" if rest else f"{name}(limit={limit}p)"
    return bucket(lines, spec) | {"frames": frames(draw, [(0, 0, 0)], LONG)}


def bucket(lines: list[str], child: str) -> Case:
    """Return `child` below tbf, which has tokens for the first frame only."""
    start = f"tc qdisc add dev dum0 root handle 1: tbf rate {SLOW} burst 1600 limit 1m"
    qdisc = {"name": "tbf", "rate": SLOW, "burst": "1600B", "children": [child]}
    return {"lines": [start, *lines], "qdisc": qdisc, "early": 1, "flow": 0}


def prio_below_tbf(draw: random.Random) -> Case:
    """Return prio below tbf: later frames of earlier bands overtake the one looked at."""
    bands = draw.randint(2, 5)
    limits = [draw.randint(2, 12) for _ in range(bands)]
    lines = [f"tc qdisc add dev dum0 parent 1:1 handle 20: prio bands {bands}"]
    lines[0] += " priomap" + f" {bands - 1}" * 16
    lines += [
        f"tc qdisc add dev dum0 parent 20:{i + 1:x} pfifo limit {limit}"
        for i, limit in enumerate(limits)
    ]
    children = " ".join(f"droptail(limit={limit}p)" for limit in limits)
    child = f'prio(flows={bands}, by=class, priomap="", children={children})'
    classes = [((0x20 << 16) + i + 1, 0, i) for i in range(bands)]
    return bucket(lines, child) | {"frames": frames(draw, classes, LONG)}


def drr_below_tbf(draw: random.Random) -> Case:
    """Return drr below tbf, which dequeues the frame looked at and keeps it."""
    limits = [draw.randint(2, 12) for _ in range(draw.randint(2, 5))]
    lines = ["tc qdisc add dev dum0 parent 1:1 handle 20: drr"]
    for i, limit in enumerate(limits):
        lines.append(f"tc class add dev dum0 parent 20: classid 20:{i + 1:x} drr quantum 600")
        lines.append(f"tc qdisc add dev dum0 parent 20:{i + 1:x} pfifo limit {limit}")
    children = " ".join(f"droptail(limit={limit}p)" for limit in limits)
    child = f"drr(flows={len(limits)}, by=class, quantum=600B, children={children})"
    classes = [((0x20 << 16) + i + 1, 0, i) for i in range(len(limits))]
    return bucket(lines, child) | {"frames": frames(draw, classes, LONG)}


STEADY = [91, 140, 161, 165, 172, 223, 228, 234]
"""Seeds of `real_time` whose order is the same if frames arrive up to 8 ms later and leave up to 12
ms later, as timers of the kernel do, and another one without the real-time curves."""

CASES = {
    f"{kind.__name__}-{seed}": kind(random.Random(seed))
    for kind in (hfsc, drr, filtered, turns, prio_below_tbf, drr_below_tbf)
    for seed in range(uml.SEEDS)
}
CASES |= {f"real_time-{seed}": real_time(random.Random(seed)) for seed in STEADY[: 2 * uml.SEEDS]}
CASES |= {f"tbf-{child.split()[0]}": below_tbf(child, random.Random(child)) for child in BELOW}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what the kernel does in each case."""
    folder = tmp_path_factory.mktemp("kernel")
    modules = ("cls_u32", "act_skbedit")
    script = [f'insmod "$modules"/net/sched/{module}.ko' for module in modules]
    script += ["ip link del dum0", f"ip link add dum0 numtxqueues {QUEUES} type dummy"]
    script += ["ip link set dum0 up txqueuelen 1000"]
    return uml.sent(CASES, folder, script)


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_departures(
    name: str, kernel: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """The frames of a burst leave in the kernel's order, and the same ones are dropped."""
    case, recorded = CASES[name], kernel[name]
    if recorded["early"] > case.get("early", 2):
        pytest.skip("the machine was too slow: the queue was served before the burst had arrived")
    left = departures(case, case["qdisc"], tmp_path)
    assert (len(left) < FRAMES) == ("tbf" in name)
    assert sorted(left) == sorted(recorded["order"])
    late = case.get("late", 0)
    assert swapped(left, recorded["order"]) <= late
    if late:
        table = {key: value for key, value in case["qdisc"].items() if key != "rt"}
        without = departures(case, table, tmp_path)
        assert swapped(without, recorded["order"]) > 6 * late


def departures(case: Case, qdisc: dict[str, Any], folder: Path) -> dict[int, float]:
    """Return the departure times of the frames that `qdisc` sends here, in their order."""
    rows = [
        f"{i},{1000 * i},{case.get('flow', i)},{row[2]},{row[3]}"
        for i, row in enumerate(case["frames"])
    ]
    path = folder / "arrivals.csv"
    path.write_text("i,t_ns,flow,size_B,dscp\n" + "\n".join(rows) + "\n")
    columns = replay(path, qdisc, "100gbit").columns
    times = columns["t_deq_us"].tolist()
    order = columns["t_deq_us"].argsort(kind="stable").tolist()
    return {columns["i"][k].item(): times[k] for k in order if times[k] >= 0}


def swapped(times: dict[int, float], order: list[int]) -> float:
    """Return the longest time between two frames here that left in reverse order there."""
    ranks = {frame: rank for rank, frame in enumerate(order)}
    left = list(times)
    return max(
        (
            max(times[later] - times[first], 1e-3)
            for k, first in enumerate(left)
            for later in left[k + 1 :]
            if ranks[later] < ranks[first]
        ),
        default=0.0,
    )
