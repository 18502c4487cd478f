"""qfq sends the packets of a burst in the kernel's order."""

import random
from pathlib import Path
from typing import Any

import pytest

from sojourn.engines.replay import replay
from support import uml

uml.require()

RATE = "300kbit"
"""Rate of the shaper: 40 ms per packet of 1500 bytes."""

FRAMES = 100

Case = dict[str, Any]

QUEUES = (1, 3, 1000)
"""Values of txqueuelen, from which the kernel takes the size of an aggregate: 2, 4 and 8."""


def frames(draw: random.Random, shares: list[float], longest: list[int]) -> list[list[int]]:
    """Return frames (priority, DSCP, length, class) of classes drawn with `shares`."""
    rows = []
    for i in range(FRAMES):
        k = draw.choices(range(len(shares)), shares)[0]
        length = 1500 if i < 2 else draw.randint(64, max(64, longest[k]))
        rows.append([(0x20 << 16) + k + 1, 0, length, k])
    return rows


def case(draw: random.Random) -> Case:
    """Return qfq below htb with random classes, some of which get packets above `maxpkt`.

    The packets of a class are short, long, or of any length, so that budgets and groups differ. Few
    different weights and `maxpkt` make aggregates of several classes.
    """
    n = draw.choice([1, draw.randint(2, 5), draw.randint(6, 24)])
    few = draw.randint(1, 4)
    weights = [
        draw.choice([1, 1024, draw.randint(1, 1024), draw.randint(1, 20)]) for _ in range(few)
    ]
    lengths = [draw.choice([512, 1514, 65536, draw.randint(512, 3000)]) for _ in range(few)]
    classes = [(draw.choice(weights), draw.choice(lengths)) for _ in range(n)]
    queue = draw.choice(QUEUES)
    limit = draw.choice([1000, draw.randint(2, 30)])
    lines = [
        f"ip link set dum0 txqueuelen {queue}",
        "tc qdisc add dev dum0 root handle 1: htb default 1",
        f"tc class add dev dum0 parent 1: classid 1:1 htb rate {RATE} burst 1600 cburst 1600",
        "tc qdisc add dev dum0 parent 1:1 handle 20: qfq",
    ]
    for i, (weight, maxpkt) in enumerate(classes):
        place = f"dev dum0 parent 20: classid 20:{i + 1:x}"
        lines.append(f"tc class add {place} qfq weight {weight} maxpkt {maxpkt}")
        lines.append(f"tc qdisc add dev dum0 parent 20:{i + 1:x} pfifo limit {limit}")
    child = {"name": "qfq", "by": "class", "flows": n, "weights": [w for w, _ in classes]}
    child |= {"maxpkt": [f"{m}B" for _, m in classes], "aggregate": min(queue + 1, 8)}
    child |= {"children": [{"name": "droptail", "limit": f"{limit}p"}]}
    shares = [draw.choice([1.0, draw.random(), weight / 100]) for weight, _ in classes]
    longest = [
        draw.choice([1500, min(1500, maxpkt), draw.randint(64, 1500)]) for _, maxpkt in classes
    ]
    qdisc = {"name": "htb", "rates": [RATE], "ceils": [RATE], "children": [child]}
    return {"lines": lines, "qdisc": qdisc, "frames": frames(draw, shares, longest)}


CASES = {f"qfq-{seed}": case(random.Random(seed)) for seed in range(4 * uml.SEEDS)}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what the kernel does in each case."""
    return uml.sent(CASES, tmp_path_factory.mktemp("kernel"), [])


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_departures(
    name: str, kernel: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """The frames of a burst leave in the kernel's order, and the same ones are dropped."""
    recorded = kernel[name]
    if recorded["early"] > 2:
        pytest.skip("the machine was too slow: the queue was served before the burst had arrived")
    order = departures(CASES[name], tmp_path)
    assert order == recorded["order"]


def departures(case: Case, folder: Path) -> list[int]:
    """Return the numbers of the frames that are sent here, in their order."""
    rows = [f"{i},{1000 * i},0,{row[2]},{row[3]}" for i, row in enumerate(case["frames"])]
    path = folder / "arrivals.csv"
    path.write_text("i,t_ns,flow,size_B,dscp\n" + "\n".join(rows) + "\n")
    columns = replay(path, case["qdisc"], "100gbit").columns
    times = columns["t_deq_us"]
    return [columns["i"][k].item() for k in times.argsort(kind="stable") if times[k] >= 0]
