"""Disciplines drop and send the packets that the kernel's do: skbprio, cbs, gred."""

import random
from pathlib import Path
from typing import Any

import pytest

from sojourn import tc
from sojourn.engines.replay import replay
from support import uml

uml.require()

RATE = "400kbit"
"""Rate of the shaper: 30 ms per packet of 1500 bytes."""

FRAMES = 80

Case = dict[str, Any]


def frames(draw: random.Random, classes: list[int], count: int = FRAMES) -> list[list[int]]:
    """Return frames (priority, DSCP, length) of random classes; the first two are of 1500 bytes."""
    rows = []
    for i in range(count):
        number = draw.choice(classes)
        rows.append([number, number, 1500 if i < 2 else draw.randint(64, 1500)])
    return rows


def shaped(words: str, child: dict[str, Any]) -> dict[str, Any]:
    """Return `child` below the only class of htb, where tc makes it with `words`."""
    lines = [
        "tc qdisc add dev dum0 root handle 1: htb default 1",
        f"tc class add dev dum0 parent 1: classid 1:1 htb rate {RATE} burst 1600 cburst 1600",
        f"tc qdisc add dev dum0 parent 1:1 handle 20: {words}",
    ]
    parent = {"name": "htb", "rates": [RATE], "ceils": [RATE], "children": [child]}
    return {"lines": lines, "qdisc": parent, "rate": "100gbit"}


def skbprio(draw: random.Random) -> Case:
    """Return skbprio with a random limit, and packets of some of its priorities."""
    limit = draw.choice([1, 3, draw.randint(10, 60)])
    child = {"name": "skbprio", "limit": f"{limit}p"}
    classes = draw.sample(range(64), draw.randint(2, 20))
    return shaped(f"skbprio limit {limit}", child) | {"frames": frames(draw, classes)}


def cbs(draw: random.Random) -> Case:
    """Return cbs at the root, with random slopes and a bound of its debt.

    The kernel takes 10 Mbit/s for the speed of the device. Large hicredit keep the rate if a timer
    of the kernel is late.
    """
    idle, send = draw.randint(100, 400), draw.randint(2000, 9900)
    lo, limit = draw.choice([500, 100_000]), draw.randint(20, 50)
    words = f"idleslope {idle} sendslope -{send} hicredit 50000 locredit -{lo}"
    child = {"name": "cbs", "idleslope": f"{idle}kbit", "sendslope": f"{send}kbit"}
    child |= {"hicredit": "50kB", "locredit": f"{lo}B", "limit": f"{limit}p"}
    lines = [
        f"tc qdisc add dev dum0 root handle 1: cbs {words}",
        f"tc qdisc add dev dum0 parent 1:1 handle 2: pfifo limit {limit}",
    ]
    rows = frames(draw, [0], 60)
    return {"lines": lines, "qdisc": child, "rate": "10mbit", "frames": rows, "late_s": 0.03}


def weight_log(minimum: int, burst: int) -> int:
    """Return the exponent that tc computes for the weight, for packets of 1000 bytes."""
    rest = burst + 1 - minimum / 1000
    return next(log for log in range(1, 32) if rest <= (1 - (1 - 0.5**log) ** burst) * 2**log)


def gred(draw: random.Random) -> Case:
    """Return gred in its three modes, with thresholds next to each other: nothing is random."""
    vqs = draw.sample(range(16), draw.randint(1, 4))
    mode = draw.choice(["plain", "rio", "wred"])
    prios = draw.sample(range(1, 16), len(vqs))
    if mode == "wred":
        prios[-1] = prios[0]
    default, limit = draw.choice([vqs[0], draw.randrange(16)]), draw.randint(10_000, 60_000)
    grio = mode != "plain"
    case = shaped(f"gred setup vqs 16 default {default}{' grio' * grio} limit {limit}", {})
    child: dict[str, Any] = {"name": "gred", "vqs": vqs, "default": default, "grio": grio}
    child |= {"prio": prios, "packet": "1000B", "unassigned_limit": f"{limit}B"}
    lists: dict[str, list[Any]] = {"limits": [], "min_th": [], "max_th": [], "w_q": []}
    for vq, prio in zip(vqs, prios, strict=True):
        own, minimum = draw.randint(5000, limit), draw.randint(1000, 15_000)
        burst = minimum // 1000 + draw.randint(1, 40)
        words = f"vq {vq} prio {prio} limit {own} min {minimum} max {minimum + 1} burst {burst}"
        words += " avpkt 1000 bandwidth 10mbit"
        case["lines"].append(f"tc qdisc change dev dum0 parent 1:1 handle 20: gred {words}")
        lists["limits"].append(f"{own}B")
        lists["min_th"].append(f"{minimum}B")
        lists["max_th"].append(f"{minimum + 1}B")
        lists["w_q"].append(0.5 ** weight_log(minimum, burst))
    case["qdisc"]["children"] = [child | lists]
    # The index of a filter is the DP, by its last four bits.
    codes = [vq + 16 * draw.randrange(4) for vq in vqs] + draw.sample(range(64), 2)
    case["lines"].append("tc qdisc add dev dum0 clsact")
    case["lines"] += [
        f"tc filter add dev dum0 egress protocol ip prio {i + 1} u32 "
        f"match ip dsfield {code << 2:#x} 0xfc flowid 1:{code:x}"
        for i, code in enumerate(codes)
        if code
    ]
    rows = [[0, *row[1:]] for row in frames(draw, codes)]
    return case | {"frames": rows}


CASES = {
    f"{kind.__name__}-{seed}": kind(random.Random(seed))
    for kind in (skbprio, cbs, gred)
    for seed in range(uml.SEEDS)
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what the kernel does in each case."""
    folder = tmp_path_factory.mktemp("kernel")
    script = ['insmod "$modules"/net/sched/cls_u32.ko', "ip link set dum0 txqueuelen 1000"]
    return uml.sent(CASES, folder, script)


def left(case: Case, folder: Path) -> tuple[list[int], list[float]]:
    """Return the packets that leave here in their order, and the times in seconds."""
    rows = [f"{i},{1000 * i},{i},{row[2]},{row[1]}" for i, row in enumerate(case["frames"])]
    path = folder / "arrivals.csv"
    path.write_text("i,t_ns,flow,size_B,dscp\n" + "\n".join(rows) + "\n")
    columns = replay(path, case["qdisc"], case["rate"]).columns
    order = columns["t_deq_us"].argsort(kind="stable")
    sent = [i for i in order if columns["t_deq_us"][i] >= 0]
    return columns["i"][sent].tolist(), (columns["t_deq_us"][sent] / 1e6).tolist()


def test_commands_of_gred_are_the_discipline() -> None:
    """The script of the kernel, imported, has the parameters that are compared with it."""
    for name, case in CASES.items():
        if name.startswith("gred"):
            lines = [
                line for line in case["lines"] if "clsact" not in line and "egress" not in line
            ]
            (link,) = tc.imported("\n".join(lines))
            (expected,) = case["qdisc"]["children"]
            assert _by_queue(link["qdisc"]) == _by_queue(expected), name


def _by_queue(qdisc: dict[str, Any]) -> tuple[object, ...]:
    """Return the parameters of gred; the lists are tables by virtual queue."""
    link = {"rate": RATE, "qdisc": qdisc}
    gred = tc._canonical({"link": link})["link"]["qdisc"]
    keys = ["limits", "min_th", "max_th", "w_q", "packet", *["prio"] * gred["grio"]]
    queues = {}
    for i, vq in enumerate(gred["vqs"].split()):
        queues[vq] = [gred[key].split()[min(i, len(gred[key].split()) - 1)] for key in keys]
    return gred["default"], gred["grio"], gred["unassigned_limit"], queues


@pytest.mark.parametrize("name", CASES)
def test_the_packets_that_leave(
    name: str, kernel: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Of a burst into a small buffer the same packets leave, in the same order."""
    case, recorded = CASES[name], kernel[name]
    if recorded["early"] > 2:
        pytest.skip("the machine was too slow: the queue was served before the burst had arrived")
    order, times = left(case, tmp_path)
    assert order == recorded["order"]
    assert len(order) > 1
    if "late_s" in case:
        kernel_times = [(at - recorded["times"][0]) / 1e9 for at in recorded["times"]]
        pairs = zip(times, kernel_times, strict=True)
        apart = [theirs - ours + times[0] for ours, theirs in pairs]
        assert min(apart) > -0.001, apart
        assert max(apart) < case["late_s"], apart
