"""Tail Drop against RED with today's senders: goodput, loss of UDP, delay; bulk and web."""

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import metrics
from sojourn.result.result import Result
from sojourn_lab.papers.red_vs_taildrop.runs import (
    ACTIVE,
    SIMULATED,
    law,
    network,
    room,
    testbed,
    web,
)
from sojourn_lab.papers.red_vs_taildrop.runs import NAMES as OLD
from sojourn_lab.papers.today.drawing import dots, stated_values
from sojourn_lab.papers.today.rules import (
    ALL,
    PAIRS,
    At,
    Compared,
    by_sender,
    less,
    not_worse,
    same,
)
from sojourn_lab.papers.today.senders import (
    DISCIPLINES,
    EVERY,
    SENDERS,
    THEN,
    TODAY,
    Table,
    assigned,
    marking,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOADS: dict[str, tuple[int, int]] = {"16 FTPs": (16, 0), "64 FTPs": (64, 0), "web": (0, 1000)}
"""Number of FTPs, number of web sessions."""

LABELS = {**OLD, **DISCIPLINES}
REDS = ("red", "gred", "opt")
FQ = ("fq_codel", "cake")
EQUAL = 0.3
"""Tolerance of goodputs in Mbit/s: 3 % of the link's rate."""


def _qdisc(name: str, n: int, acks: int) -> Table:
    """Return a discipline for `n` flows; today's have the same buffer."""
    if name in OLD:
        return law(name, n, acks=acks)
    own: Table = {"isolation": "flows"} if name == "cake" else {}
    return {"name": name, "limit": f"{room(n)}p", **own}


def _web(sender: str, sessions: int) -> list[Table]:
    """Return the web users; in a mixture, each TCP has its part of them."""
    if sender == THEN:
        return web(sessions)
    tcps = SENDERS[sender].tcps
    flows = []
    for tcp in tcps:
        for flow in web(sessions // len(tcps)):
            own = {**tcp, "packet": SIMULATED.get("packet", "1514B")}
            flows.append({**flow, "name": f"{flow['name']}-{tcp['name']}", "tcp": own})
    return flows


def _scenario(sender: str, qdisc: str, load: str, seconds: int) -> Table:
    """Return the paper's network with other senders."""
    ftps, sessions = LOADS[load]
    flows = assigned(testbed(ftps), sender) if ftps else _web(sender, sessions)
    # The paper's ns-2 sender acks each packet; all others have delayed acks.
    acks = 1 if sender == THEN and sessions else 2
    own = marking(_qdisc(qdisc, ftps or ACTIVE[sessions], acks), sender)
    tree = network(own, flows, seconds)
    tree.pop("sample", None)
    tree.pop("sample_flows", None)
    return {**tree, "warmup": f"{min(40, seconds // 3)}s"}


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
    loads = tuple(LOADS) if full else ("16 FTPs", "web")
    seconds = {"16 FTPs": 120, "64 FTPs": 120, "web": 200} if full else dict.fromkeys(LOADS, 30)
    points: list[Point] = [
        ({"sender": s, "qdisc": q, "load": one}, _scenario(s, q, one, seconds[one]))
        for s in EVERY
        for q in LABELS
        for one in loads
        # No claim is about other disciplines with 64 FTPs or web traffic.
        if one == "16 FTPs" or q in OLD or (one == "64 FTPs" and q in FQ)
    ]
    return Experiment(points, measure, 5 if full else 2)


def _loads(frame: pl.DataFrame, web: bool) -> list[str]:
    return [one for one in LOADS if one in set(frame["load"]) and (one == "web") == web]


def _same_goodput(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C4: each RED's goodput equals Tail Drop's, by sender and load.

    Fails wrongly: if runs of 200 s are too short for web traffic. Passes wrongly: with web traffic
    below the link's rate the load sets the goodput, not the discipline.
    """
    frame, own = runs["red"], "goodput_mbps"
    return [
        same(At(s, f"{one}: {OLD[q]}", "goodput", "Mbit/s"),
             values(frame, own, sender=s, qdisc=q, load=one),
             values(frame, own, sender=s, qdisc="td", load=one), EQUAL)
        for s in there(frame, who)
        for one in (*_loads(frame, False), *_loads(frame, True))
        for q in REDS
    ]  # fmt: skip


def _web_loss(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C5: web: UDP's loss under Tail Drop at most 0.1 points above that under each RED.

    Fails wrongly: if few losses in 200 s leave wide intervals. Passes wrongly: at a load where
    nothing is lost all disciplines are equal.
    """
    frame, own = runs["red"], "udp_loss"
    return [
        not_worse(At(s, OLD[q], "UDP's loss", "%", 100),
                  values(frame, own, sender=s, qdisc="td", load="web"),
                  values(frame, own, sender=s, qdisc=q, load="web"), 0.1, sign=-1)
        for s in there(frame, who)
        for q in REDS
    ]  # fmt: skip


def _gain(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C6: FQ-CoDel and CAKE reduce UDP loss and delay without reducing FTP goodput.

    Fails wrongly: if a shorter queue must cost goodput (then 3 % of the rate decide). Passes
    wrongly: loss and delay are compared with a full buffer, which is easy to beat.
    """
    frame, parts = runs["red"], []
    for s in there(frame, who):
        for one in _loads(frame, False):
            for q in FQ:
                ours, theirs = ({"sender": s, "load": one, "qdisc": x} for x in (q, "td"))
                what = f"{one}, {LABELS[q]}"
                parts += [
                    less(At(s, f"{what}: UDP's loss", "UDP's loss", "%", 100),
                         values(frame, "udp_loss", **ours), values(frame, "udp_loss", **theirs)),
                    less(At(s, f"{what}: delay", "delay", "ms", 1e3),
                         values(frame, "delay_s", **ours), values(frame, "delay_s", **theirs)),
                    not_worse(At(s, f"{what}: goodput", "goodput", "Mbit/s"),
                              values(frame, "goodput_mbps", **ours),
                              values(frame, "goodput_mbps", **theirs), EQUAL),
                ]  # fmt: skip
    return parts


CLAIMS = [
    Claim(
        "005-C4", "Tail Drop against RED: RED has no more goodput than Tail Drop, bulk and web.",
        "red", "practically equal",
        "The whole interval of the difference, paired by seed, is within 3 % of the link's rate. "
        f"{ALL}",
        partial(_same_goodput), ("red",),
        why="web goodput of these mixtures varies between seeds",
    ),
    Claim(
        "005-C5", "Tail Drop against RED: with web traffic UDP loses no more under Tail Drop.",
        "red", "lowest with Tail Drop",
        f"At most 0.1 points above each RED, with the whole interval of the difference. {ALL}",
        partial(_web_loss), ("red",),
        why="losses vary much between seeds",
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

FEW = ("cubic", "bbr", "bbr3")
FACTS = {
    f"red-{name}": by_sender("red", column, unit, scale, who=FEW, qdisc=q, load=load)
    for name, (column, unit, scale, q, load) in {
        "td": ("goodput_mbps", "Mbit/s", 1, "td", "16 FTPs"),
        "red": ("goodput_mbps", "Mbit/s", 1, "red", "16 FTPs"),
        "udp-td": ("udp_loss", "%", 100, "td", "16 FTPs"),
        "udp-red": ("udp_loss", "%", 100, "red", "16 FTPs"),
        "udp-fq": ("udp_loss", "%", 100, "fq_codel", "16 FTPs"),
        "udp-td-64": ("udp_loss", "%", 100, "td", "64 FTPs"),
        "udp-fq-64": ("udp_loss", "%", 100, "fq_codel", "64 FTPs"),
        "delay-td": ("delay_s", "ms", 1e3, "td", "16 FTPs"),
        "delay-fq": ("delay_s", "ms", 1e3, "fq_codel", "16 FTPs"),
        "web-td": ("udp_loss", "%", 100, "td", "web"),
        "web-red": ("udp_loss", "%", 100, "red", "web"),
    }.items()
}

STATED = 8.4
"""Goodput of FTPs that the paper states for all disciplines, Mbit/s."""


@figure("red", "Tail Drop against RED, 16 FTPs: goodput of TCP", needs=["red"], size=(9, 4.4))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput under each discipline; today's on a grey ground."""
    stated_values(ax, list(LABELS), dict.fromkeys(OLD, STATED), "paper, about")
    dots(ax, runs["red"].filter(pl.col("load") == "16 FTPs"), "goodput_mbps", LABELS)
    ax.set(ylabel="goodput, Mbit/s")
