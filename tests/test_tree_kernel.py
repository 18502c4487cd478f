"""Trees of classes serve packets in the order of the kernel's: hfsc, drr, prio with filters."""

import json
import os
import platform
import random
import shlex
from pathlib import Path
from typing import Any

import pytest

from sojourn.engines.replay import replay
from sojourn_lab.validation.linux import user_mode

if packages := user_mode.missing():
    reason = f"Debian's {', '.join(packages)} is not installed"
    if os.environ.get("CI") and platform.machine() == "x86_64":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)

SENDER = Path(__file__).parent / "support" / "tree_sender.py"

RATE = "200kbit"
"""Rate of the shaper: 60 ms per packet of 1500 bytes."""

FRAMES = 80

Case = dict[str, Any]


def frames(draw: random.Random, classes: list[tuple[int, int, int]]) -> list[list[int]]:
    """Return frames (priority, DSCP, length) of random classes, and their class here."""
    rows = []
    for i in range(FRAMES):
        priority, dscp, number = draw.choice(classes)
        length = 1500 if i < 2 else draw.randint(64, 1500)
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


CASES = {
    f"{kind.__name__}-{seed}": kind(random.Random(seed))
    for kind in (hfsc, drr, filtered)
    for seed in range(6)
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what the kernel does in each case."""
    folder = tmp_path_factory.mktemp("kernel")
    modules = '"$modules"/net/sched/cls_u32.ko'
    script = [f"insmod {modules}", "ip link set dum0 txqueuelen 1000"]
    for name, case in CASES.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps([row[:3] for row in case["frames"]]))
        script += [*case["lines"], f"echo CASE {name}"]
        script.append(f"{{python}} {SENDER} {shlex.quote(str(path))}")
        script.append("tc qdisc del dev dum0 root")
    text = user_mode.run("\n".join(script), folder, vectors=True)
    lines = text.splitlines()
    starts = {line.split()[1]: i for i, line in enumerate(lines) if line.startswith("CASE ")}
    faults = [line for line in lines if not line.startswith(("CASE ", "{"))]
    assert starts.keys() == CASES.keys(), text
    assert not faults, faults
    return {name: json.loads(lines[i + 1]) for name, i in starts.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_departures(
    name: str, kernel: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """All frames of a burst leave in the kernel's order."""
    case, recorded = CASES[name], kernel[name]
    if recorded["early"] > 2:
        pytest.skip("the machine was too slow: the queue was served before the burst had arrived")
    rows = [f"{i},{1000 * i},{i},{row[2]},{row[3]}" for i, row in enumerate(case["frames"])]
    path = tmp_path / "arrivals.csv"
    path.write_text("i,t_ns,flow,size_B,dscp\n" + "\n".join(rows) + "\n")
    columns = replay(path, case["qdisc"], "100gbit").columns
    assert (columns["t_deq_us"] >= 0).all()
    left = columns["i"][columns["t_deq_us"].argsort(kind="stable")].tolist()
    assert len(recorded["order"]) == FRAMES
    assert left == recorded["order"]
