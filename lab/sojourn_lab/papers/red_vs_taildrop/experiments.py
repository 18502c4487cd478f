"""Experiments of `red_vs_taildrop`: `ftp` and `web` are the paper's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._util.units import bytes_of, seconds
from sojourn_lab.papers.red_vs_taildrop.measure import measure, measure_profile, measure_two_way
from sojourn_lab.papers.red_vs_taildrop.runs import (
    ACTIVE,
    DEFAULT,
    FTPS,
    NAMES,
    SESSIONS,
    SetUp,
    Table,
    in_profile,
    law,
    network,
    room,
    shared_medium,
    simulated,
    testbed,
    two_way,
    web,
)
from sojourn_lab.reproduction.paper import Experiment, Point

LIGHT, SATURATED = 600, 1600
"""Sessions below and above the paper's."""

THREE = (16, 64, 256)
"""FTPs of the side experiments."""

MODEL_FLOWS = (5, 10, 16, 20, 32, 40, 60, 90, 137, 200, 300, 500, 800, 1300, 2100, 3400, 5500)
"""Numbers of flows for which REDopt's model is evaluated; others are interpolated."""

SHARES = (0.3, 0.45, 0.6, 0.8)
"""Tail Drop's smaller buffers, as shares of the common one."""

PLAIN: Table = {"name": "droptail", "limit": "300p"}
"""Tail Drop with the bandwidth-delay product that the paper names."""

LARGE = "objects 10 times as large, as many times fewer pages"
USERS = ("pages wait for the last", "objects 3 times as large, as many times fewer pages", LARGE,
         "ns-2's example")  # fmt: skip
"""Other web users with about the same offered load."""

SPACINGS = ("no", "yes")
"""RED's `wait`, other than chosen: gaps as of Floyd and Jacobson, and as in ns-2."""

WEIGHTS = (0.0005, 0.02)
"""w_q of REDstd and GREDstd, other than chosen."""


def web_users(name: str, set_up: SetUp) -> dict[str, Any]:
    """Return what the source of other web users changes."""
    if name == "pages wait for the last":
        return {"overlap": False}
    if name == "ns-2's example":
        return {
            "objects": 1,
            "object_gap": "exponential(10ms)",
            "page_gap": "exponential(15s)",
            "first": "exponential(15s)",
            "size": "lomax(mean=17688B, shape=1.2)",
        }
    k = int(name.split()[1])
    gap_s = f"{k * seconds(set_up.page_gap):g}s"
    return {
        "size": f"pareto(mean={k * bytes_of(set_up.object_size)}B, shape=1.2)",
        "page_gap": f"pareto(mean={gap_s}, shape=2)",
        "first": f"uniform(0s, {gap_s})",
    }


def scenarios(full: bool, set_up: SetUp = DEFAULT) -> dict[str, Experiment]:
    """Return the experiments: `ftp` and `web` are the paper's, the others are our own."""
    at = _Runs(set_up, 500 if full else 200, 5000 if full else 500, full)
    few, web_few = (3 if full else 2), (4 if full else 2)
    two = {"two-way": Experiment(at.both_ways(), measure_two_way, few)}
    two["profile"] = Experiment(at.profiles(), measure_profile, few)
    points = {
        "ftp": (at.bulk(), 6 if full else 3),
        "web": (at.users(SESSIONS), 4 if full else 3),
        "first": (at.first(), few),
        "other-users": (at.other_users(), few),
        "model": (at.model(), 1),
        "buffers": (at.buffers(testbed), few),
        "weights": (at.weights(), few),
        "each-ack": (at.bulk_simulated(), few),
        "each-ack-buffers": (at.buffers(simulated), few),
        "ns-2": (at.ns2(), few),
        "spacing": (at.spacing(), few),
        "memory-ftp": (at.memory_bulk(), few),
        "memory-web": (at.memory_web(), few),
        "made-for-1200": (at.made_for_fewer(), web_few),
        "half-duplex": (at.half_duplex(), few),
        "half-duplex-buffers": (at.half_duplex_buffers(), few),
    }
    return {name: Experiment(each, measure, n) for name, (each, n) in points.items()} | two


@dataclass(frozen=True)
class _Runs:
    """Points of the experiments, with durations of bulk data and of web traffic in seconds."""

    set_up: SetUp
    bulk_s: int
    web_s: int
    full: bool

    def bulk(self) -> list[Point]:
        """Return the runs of figure 3: FTPs over the testbed."""
        return [({"q": q, "flows": n}, self._testbed(q, n)) for q in NAMES for n in FTPS]

    def users(self, sessions: Sequence[int]) -> list[Point]:
        """Return the runs of figure 4: web users."""
        return [
            ({"q": q, "sessions": s}, self._web(self._law(q, ACTIVE[s]), s))
            for q in NAMES
            for s in sessions
        ]

    def first(self) -> list[Point]:
        """Return the runs that count open connections, also below and above the paper's loads."""
        every = (LIGHT, *SESSIONS, SATURATED)
        return [({"sessions": s}, self._web(PLAIN, s)) for s in every]

    def other_users(self) -> list[Point]:
        """Return shorter first runs with other users."""
        end_s = 2000 if self.full else 300
        return [
            ({"users": users, "sessions": s},
             network(PLAIN, web(s, self.set_up, **web_users(users, self.set_up)), end_s,
                     set_up=self.set_up))
            for users in USERS
            for s in SESSIONS
        ]  # fmt: skip

    def model(self) -> list[Point]:
        """Return runs without TCP that read the parameters of REDopt's model."""
        end_s = int(seconds(self.set_up.warmup)) + 1
        return [
            ({"flows": n}, network(self._law("opt", n), [], end_s, set_up=self.set_up))
            for n in MODEL_FLOWS
        ]

    def buffers(self, flows: Any) -> list[Point]:
        """Return the runs of Tail Drop with smaller buffers, over the testbed or simulated."""
        return [
            ({"share": share, "flows": n}, self._tail(n, share, flows(n, self.set_up)))
            for n in THREE
            for share in SHARES
        ]

    def weights(self) -> list[Point]:
        """Return REDstd and GREDstd with other weights, at the highest load."""
        return [
            ({"q": q, "w_q": w_q}, self._web(self._law(q, ACTIVE[1400], w_q=w_q), 1400))
            for q in ("red", "gred")
            for w_q in WEIGHTS
        ]

    def bulk_simulated(self) -> list[Point]:
        """Return the runs of FTPs as simulated in the paper, which does not show them."""
        flows = FTPS if self.full else THREE[::2]
        return [
            ({"q": q, "flows": n}, self._network(self._law(q, n), simulated(n, self.set_up)))
            for q in NAMES
            for n in flows
        ]

    def ns2(self, limit: int = 300) -> list[Point]:
        """Return our runs in ns-2: one buffer, `wait` yes, gentle up to 2 max_th, jittered UDP."""
        laws = {
            "td": {"name": "droptail", "limit": f"{limit - 1}p"},
            "red": self._law("red", 0, limit=limit, wait="yes"),
            "gred": self._law("gred", 0, limit=limit, wait="yes", gentle="two_max_th"),
        }
        end_s = 300 if self.full else 200
        return [
            ({"q": q, "flows": n},
             network(qdisc, simulated(n, self.set_up), end_s, jitter=0.5, set_up=self.set_up))
            for q, qdisc in laws.items()
            for n in THREE
        ]  # fmt: skip

    def spacing(self) -> list[Point]:
        """Return bulk data with drops spaced as of Floyd and Jacobson, and as in ns-2.

        `acks` is the number of packets per ack; with an ack per packet REDopt alone runs.
        """
        points: list[Point] = []
        for wait in SPACINGS:
            for q in ("red", "gred", "opt"):
                for n in FTPS if self.full else THREE[::2]:
                    labels = {"wait": wait, "q": q, "flows": n, "acks": 2}
                    points.append((labels, self._testbed(q, n, wait=wait)))
            for n in THREE[::2]:
                labels = {"wait": wait, "q": "opt", "flows": n, "acks": 1}
                tree = self._network(self._law("opt", n, wait=wait), simulated(n, self.set_up))
                points.append((labels, tree))
        return points

    def memory_bulk(self) -> list[Point]:
        """Return bulk data with a faster average of REDopt."""
        return [
            ({"q": "opt", "flows": n}, self._testbed("opt", n, w_q_rule="memory")) for n in FTPS
        ]

    def memory_web(self) -> list[Point]:
        """Return web traffic with a faster average of REDopt."""
        return [
            ({"q": "opt", "sessions": s}, self._web(self._law("opt", n, w_q_rule="memory"), s))
            for s, n in ACTIVE.items()
        ]

    def made_for_fewer(self) -> list[Point]:
        """Return 1400 sessions with parameters made for 1200."""
        return [
            ({"q": q, "sessions": 1400}, self._web(self._law(q, ACTIVE[1200]), 1400)) for q in NAMES
        ]

    def both_ways(self) -> list[Point]:
        """Return FTPs in both directions."""
        return [
            ({"q": q, "flows": n}, two_way(self._testbed(q, n), testbed(n, self.set_up)))
            for q in NAMES
            for n in THREE
        ]

    def half_duplex(self) -> list[Point]:
        """Return bulk data with a bottleneck that the acks share."""
        return [(labels, shared_medium(dict(tree), self.set_up)) for labels, tree in self.bulk()]

    def half_duplex_buffers(self) -> list[Point]:
        """Return Tail Drop with smaller buffers and a bottleneck that the acks share."""
        every = self.buffers(testbed)
        return [(labels, shared_medium(dict(tree), self.set_up)) for labels, tree in every]

    def profiles(self) -> list[Point]:
        """Return FTPs of which half are in profile: RIO, REDstd and Tail Drop."""
        return [
            ({"q": q, "flows": n}, in_profile(self._testbed(q, n)))
            for q in ("td", "red", "rio")
            for n in THREE
        ]

    def _law(self, q: str, n: int, **more: Any) -> Table:
        return law(q, n, set_up=self.set_up, **more)

    def _network(self, qdisc: Table, flows: Sequence[Table]) -> Table:
        return network(qdisc, flows, self.bulk_s, set_up=self.set_up)

    def _testbed(self, q: str, n: int, **more: Any) -> Table:
        return self._network(self._law(q, n, acks=2, **more), testbed(n, self.set_up))

    def _tail(self, n: int, share: float, flows: Sequence[Table]) -> Table:
        limit = round(share * room(n, self.set_up))
        return self._network(self._law("td", n, limit=limit), flows)

    def _web(self, qdisc: Table, sessions: int) -> Table:
        return network(qdisc, web(sessions, self.set_up), self.web_s, set_up=self.set_up)
