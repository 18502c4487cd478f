"""Settings of `codel_dc`: other values of what the paper leaves open, for every claim."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sojourn_lab.papers.codel_dc.runs import (
    HALF_SAMPLED,
    SAMPLED,
    SPREAD_NS,
    of_answers,
    of_flows,
    over_time,
    poisson,
    queries,
    switch,
)
from sojourn_lab.papers.codel_dc.set_up import BASE, SCHEMES, WIDE, SetUp, Table
from sojourn_lab.reproduction.claims import Setting, overlay
from sojourn_lab.reproduction.paper import Experiment, Point

LONG, SHORT = "1600ms", "600ms"
"""Duration of the queries where the time matters (20 queries and more), and elsewhere."""


@dataclass(frozen=True)
class Way:
    """A setting: duration of runs with queries, and what it changes.

    `source` changes the source of queries, `keywords` are of `switch`, and `laws` replaces
    disciplines. `pause` is True if the setting is about the time between queries. Only other
    disciplines also run the short flows.
    """

    end: str
    source: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    laws: Mapping[str, Table] = field(default_factory=dict)
    pause: bool = False

    @property
    def schemes(self) -> tuple[str, ...]:
        """Names of the affected disciplines."""
        return tuple(self.laws) or SCHEMES


def ways(set_up: SetUp = BASE) -> dict[str, Way]:
    """Return the settings by name. The paper states none of these."""
    fast = {"nic": {"rate": "10gbit"}}
    apart = {"spread_ns": SPREAD_NS, "long_ns": SPREAD_NS // 2}
    red, codel = set_up.red, set_up.codel
    return {
        "a pause of 100 ms": Way("2100ms", {"gap": "100ms"}, pause=True),
        "a pause of 1 s": Way("4100ms", {"gap": "1s"}, pause=True),
        FAST: Way("2100ms", {"gap": "100ms"}, fast, pause=True),
        "a clock of 10 ms": Way(SHORT, {}, {"tcp": {"tick": "10ms"}}),
        "servers' links that never drop": Way(SHORT, {}, {"nic": {"qdisc": WIDE}}),
        APART: Way(LONG, {}, apart),
        "RED: automatic weight": Way(LONG, laws={"red": {**red, "w_q": "auto"}}),
        "RED: weight 0.02": Way(LONG, laws={"red": {**red, "w_q": 0.02}}),
        "RED: weight 1": Way(LONG, laws={"red": {**red, "w_q": 1.0}}),
        "RED: not gentle": Way(LONG, laws={"red": {**red, "gentle": "none"}}),
        "CoDel: RFC 8289": Way(LONG, laws={"codel": {**codel, "variant": "rfc"}}),
    }


FAST = "a pause of 100 ms and servers' links of 10 Gbit/s"
APART = "links that differ by 137 ns"

OF_QUICK = ("a pause of 100 ms", APART, "RED: not gentle")
"""Settings of quick mode."""


def varied(
    full: bool, set_up: SetUp, sizes: tuple[int, ...], counts: tuple[int, ...],
    loads: tuple[int, ...],
) -> dict[str, Experiment]:  # fmt: skip
    """Return the points of figures 5, 7 to 11 with each setting."""
    incast: list[Point] = []
    servers: list[Point] = []
    flows: list[Point] = []
    half: list[Point] = []
    burst: list[Point] = []
    busy_end = "2100ms" if full else "600ms"
    n, one = set_up.servers, queries(100, set_up, number=1)
    for name, way in ways(set_up).items():
        if not full and name not in OF_QUICK:
            continue
        end = way.end if full else "400ms"
        for s in way.schemes:
            at = {"setting": name, "scheme": s}
            for kb in sizes:
                source = queries(kb, set_up, **way.source)
                incast.append(({**at, "kB": kb}, _tree(way, set_up, s, n, source, end)))
            for count in counts:
                source = queries(1000 / count, set_up, **way.source)
                servers.append(
                    ({**at, "servers": count}, _tree(way, set_up, s, count, source, end))
                )
            if not way.pause:
                burst.append((at, _tree(way, set_up, s, n, one, "300ms")))
            if way.laws:
                for x in loads:
                    busy = _tree(way, set_up, s, n, poisson(x, set_up), busy_end, sampled=False)
                    flows.append(({**at, "load": x}, busy))
                    if x == 50:
                        half.append(({**at, "load": x}, busy | HALF_SAMPLED))
    seeds = 3 if full else 2
    return {
        "incast settings": Experiment(incast, of_answers, seeds),
        "servers settings": Experiment(servers, of_answers, seeds),
        "loads settings": Experiment(flows, of_flows, seeds),
        "half load settings": Experiment(half, over_time, seeds),
        "burst settings": Experiment(burst, over_time, 5 if full else 2),
    }


def _tree(
    way: Way, set_up: SetUp, scheme: str, servers: int, source: Table, end: str,
    sampled: bool = True,
) -> Table:  # fmt: skip
    """Return the switch with a setting."""
    law = {**set_up.laws, **way.laws}[scheme]
    tree = switch(law, servers, source, end, set_up=set_up, **way.keywords)
    return tree | SAMPLED if sampled else tree


def _setting(name: str, way: Way) -> Setting:
    """Return a setting that replaces the rows of all experiments that it affects."""
    bases = ["incast", "servers"]
    bases += [] if way.pause else ["burst"]
    bases += ["loads", "half load"] if way.laws else []
    return Setting(name, {one: overlay(f"{one} settings", setting=name) for one in bases})


SETTINGS = [_setting(name, way) for name, way in ways().items()]
"""Settings of the paper, each for all claims about the queries, the burst, and short flows."""
