"""Tail Drop against RED with today's senders: goodput, loss of UDP, delay; bulk and web."""

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import metrics
from sojourn.result.result import Result
from sojourn_lab.papers.red_vs_taildrop.runs import (
    ACTIVE,
    SIMULATED,
    TESTBED,
    law,
    network,
    room,
    testbed,
    web,
)
from sojourn_lab.papers.red_vs_taildrop.runs import NAMES as OLD
from sojourn_lab.papers.today.common import (
    ALL,
    DISCIPLINES,
    NAMES,
    PAIRS,
    TODAY,
    Table,
    by_sender,
    dots,
    not_worse,
    only,
    senders,
    tcp,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure
from sojourn_lab.reproduction.parts import Part, equal, order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOADS: dict[str, tuple[int, int]] = {"16 FTPs": (16, 0), "64 FTPs": (64, 0), "web": (0, 1000)}
"""Number of FTPs, number of web sessions."""

LABELS = {**OLD, **DISCIPLINES}
FQ = ("fq_codel", "cake")
EQUAL = 0.3
"""Tolerance of goodputs in Mbit/s: 3 % of the link's rate."""


def _qdisc(name: str, n: int, acks: int) -> Table:
    """Return a discipline for `n` flows; today's have the same buffer."""
    if name in OLD:
        return law(name, n, acks=acks)
    own: Table = {"isolation": "flows"} if name == "cake" else {}
    return {"name": name, "limit": f"{room(n)}p", **own}


def _scenario(sender: str, qdisc: str, load: str, seconds: int) -> Table:
    """Return the paper's network with other senders."""
    ftps, sessions = LOADS[load]
    flows = testbed(ftps) if ftps else web(sessions)
    then = TESTBED if ftps else {**SIMULATED, "packet": "1514B"}
    flows = [{**flow, "tcp": tcp(sender, then)} for flow in flows]
    # The paper's ns-2 sender acks each packet; all others have delayed acks.
    acks = 1 if sender == "then" and sessions else 2
    tree = network(_qdisc(qdisc, ftps or ACTIVE[sessions], acks), flows, seconds)
    tree.pop("sample", None)
    tree.pop("sample_flows", None)
    return {**tree, "warmup": f"{min(60, seconds // 3)}s"}


def measure(result: Result) -> dict[str, Any]:
    """Keep goodput with headers, UDP's loss, and the mean queueing delay."""
    link = result.links["bottleneck"]
    udp = [f for f in result.flows.values() if f.kind == "udp"]
    return {
        "goodput_mbps": metrics.tcp_goodput_bps(result, wire=True) / 1e6,
        "udp_loss": sum(f.lost_packets for f in udp) / sum(f.sent_packets for f in udp),
        "loss": link.loss_rate,
        "delay_s": link.sojourn_mean_s,
        "utilisation": link.utilisation,
    }


def experiment(full: bool) -> Experiment:
    """Return the runs: sender, discipline, load."""
    loads, seconds = (tuple(LOADS), 200) if full else (("16 FTPs", "web"), 30)
    points: list[Point] = [
        ({"sender": s, "qdisc": q, "load": one}, _scenario(s, q, one, seconds))
        for s in senders(full)
        for q in LABELS
        for one in loads
    ]
    return Experiment(points, measure, 5 if full else 2)


def _loads(frame: pl.DataFrame, web: bool) -> list[str]:
    return [one for one in LOADS if one in set(frame["load"]) and (one == "web") == web]


def _same_goodput(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C4: each RED's goodput equals Tail Drop's, by sender and load.

    Fails wrongly: if runs of 200 s are too short for web traffic. Passes wrongly: with web traffic
    below the link's rate the load sets the goodput, not the discipline.
    """
    frame, own = runs["red"], "goodput_mbps"
    return [
        equal(f"{NAMES[s]}, {one}: {OLD[q]}", values(frame, own, sender=s, qdisc=q, load=one),
              values(frame, own, sender=s, qdisc="td", load=one), points=EQUAL, unit="Mbit/s")
        for s in there(frame, who)
        for one in (*_loads(frame, False), *_loads(frame, True))
        for q in ("red", "gred", "opt")
    ]  # fmt: skip


def _web_loss(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C5: web: UDP's loss under Tail Drop at most 0.1 points above that under each RED.

    Fails wrongly: if few losses in 200 s leave wide intervals. Passes wrongly: at a load where
    nothing is lost all disciplines are equal.
    """
    frame, own = runs["red"], "udp_loss"
    return [
        not_worse(f"{NAMES[s]}: {OLD[q]}", values(frame, own, sender=s, qdisc="td", load="web"),
                  values(frame, own, sender=s, qdisc=q, load="web"), 0.1, unit="%", scale=100,
                  sign=-1)
        for s in there(frame, who)
        for q in ("red", "gred", "opt")
    ]  # fmt: skip


def _gain(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C6: FQ-CoDel and CAKE reduce UDP loss and delay without reducing FTP goodput.

    Fails wrongly: if a shorter queue must cost goodput (then 3 % of the rate decide). Passes
    wrongly: loss and delay are compared with a full buffer, which is easy to beat.
    """
    frame, parts = runs["red"], []
    for s in there(frame, who):
        for one in _loads(frame, False):
            for q in FQ:
                at = {"sender": s, "load": one}
                ours, theirs = {**at, "qdisc": q}, {**at, "qdisc": "td"}
                what = f"{NAMES[s]}, {one}, {LABELS[q]}"
                parts += [
                    order(f"{what}: UDP's loss", values(frame, "udp_loss", **ours),
                          values(frame, "udp_loss", **theirs), unit="%", scale=100),
                    order(f"{what}: delay", values(frame, "delay_s", **ours),
                          values(frame, "delay_s", **theirs), unit="ms", scale=1e3),
                    not_worse(f"{what}: goodput", values(frame, "goodput_mbps", **ours),
                              values(frame, "goodput_mbps", **theirs), EQUAL, unit="Mbit/s"),
                ]  # fmt: skip
    return parts


CLAIMS = [
    Claim(
        "005-C4", "Tail Drop against RED: RED has no more goodput than Tail Drop, bulk and web.",
        "red", "practically equal",
        "The whole interval of the difference, paired by seed, is within 3 % of the link's rate. "
        f"{ALL}",
        partial(_same_goodput), ("red",),
        why="early drops change the goodput of some senders",
    ),
    Claim(
        "005-C5", "Tail Drop against RED: with web traffic UDP loses no more under Tail Drop.",
        "red", "lowest with Tail Drop",
        f"At most 0.1 points above each RED, with the whole interval of the difference. {ALL}",
        partial(_web_loss), ("red",),
        why="with BBR and BBRv3 the losses vary much between seeds",
    ),
    Claim(
        "005-C6", "Today: compared with Tail Drop, FQ-CoDel and CAKE reduce UDP loss and delay "
        "without reducing FTP goodput.", "red", "(not in the paper)",
        f"16 and 64 FTPs. UDP's loss and the mean delay are less. {PAIRS} Goodput is at most 3 % "
        f"of the link's rate below. {ALL}",
        partial(_gain), ("red",),
        why="with 64 FTPs UDP sends more than its fair share",
    ),
]  # fmt: skip

SETTINGS = only("red")

FACTS = {
    "red-td": by_sender("red", "goodput_mbps", "Mbit/s", qdisc="td", load="16 FTPs"),
    "red-red": by_sender("red", "goodput_mbps", "Mbit/s", qdisc="red", load="16 FTPs"),
    "red-udp-td": by_sender("red", "udp_loss", "%", 100, qdisc="td", load="16 FTPs"),
    "red-udp-red": by_sender("red", "udp_loss", "%", 100, qdisc="red", load="16 FTPs"),
    "red-udp-fq": by_sender("red", "udp_loss", "%", 100, qdisc="fq_codel", load="16 FTPs"),
    "red-delay-td": by_sender("red", "delay_s", "ms", 1e3, qdisc="td", load="16 FTPs"),
    "red-delay-fq": by_sender("red", "delay_s", "ms", 1e3, qdisc="fq_codel", load="16 FTPs"),
    "red-web-td": by_sender("red", "udp_loss", "%", 100, qdisc="td", load="web"),
    "red-web-red": by_sender("red", "udp_loss", "%", 100, qdisc="red", load="web"),
}


@figure("red", "Tail Drop against RED, 16 FTPs: goodput of TCP", needs=["red"], size=(7.6, 3.6))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput under each discipline; today's on a grey ground."""
    dots(ax, runs["red"].filter(pl.col("load") == "16 FTPs"), "goodput_mbps", LABELS)
    ax.set(ylabel="goodput, Mbit/s")
