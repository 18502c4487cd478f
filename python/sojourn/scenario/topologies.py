"""Scenarios of common topologies: dumbbell, parking lot, star, two-way line.

Each function returns a plain `Scenario`, which can be changed with `replace`, saved with
`save_scenario`, and used wherever a scenario can. Delays of links are one-way. Keys that a function
does not have (`warmup`, `seed`, `sample`, ...) are given by keyword, as for `Scenario`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import of_link, shown
from sojourn._util.public import public
from sojourn.scenario.draft import canonical
from sojourn.scenario.keys import Flow, Link, Scenario
from sojourn.scenario.named import FLOWS_MAX
from sojourn.scenario.variants import table

Named = str | Mapping[str, Any] | Any
"""Discipline, TCP or source: a name, a text with parameters, a table, or an object."""

LINKS_MAX = 100_000
"""Largest number of links of a kind, or of pairs of hosts: a scenario of some ten seconds."""

HOPS_MAX = 10_000
"""Largest number of hops of a parking lot, each of which is a link and a group of flows."""


@public
def dumbbell(
    flows: int = 2,
    *,
    rate: str = "10mbit",
    delay: str = "1ms",
    rtt: str = "50ms",
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "bulk",
    access: str | None = None,
    duration: str = "60s",
    **settings: Any,
) -> Scenario:
    """Return flows that share one bottleneck.

    Parameters
    ----------
    flows : int, optional
        Number of flows, the group `flow`; with `access` up to 100,000.
    rate, delay : str, optional
        Rate and one-way delay of the link `bottleneck`.
    rtt : str, optional
        Round-trip propagation time of the flows, or a distribution like "uniform(20ms, 80ms)".
    qdisc : str, mapping or Qdisc, optional
        Discipline of the bottleneck.
    tcp, source : str, mapping or object, optional
        TCP and traffic source of the flows.
    access : str, optional
        Rate of a link of its own in front of the bottleneck for each flow, `access-0` and so on.
        Without it a sender is connected to the bottleneck directly.
    duration : str, optional
        Simulated time.
    **settings
        Other keys of `Scenario`.

    Returns
    -------
    Scenario
        A valid scenario.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> case = sj.dumbbell(3, rate="20mbit", qdisc="codel", rtt="uniform(20ms, 80ms)")
    >>> sj.simulate(case).links["bottleneck"].utilisation > 0.9
    True
    """
    count = _count("flows", flows, most=FLOWS_MAX if access is None else LINKS_MAX)
    links = {"bottleneck": Link(rate=rate, delay=delay, qdisc=qdisc)}
    path = ["bottleneck"]
    if access is not None:
        links |= {f"access-{i}": Link(rate=access) for i in range(count)}
        path = [_each("access", count), *path]
    flow = Flow(name="flow", count=count, path=path, rtt=rtt, tcp=tcp, source=source)
    return checked("dumbbell", duration, links, [flow], settings)


@public
def parking_lot(
    hops: int = 3,
    *,
    long: int = 1,
    cross: int = 1,
    rate: str = "10mbit",
    delay: str = "5ms",
    rtt: str | None = None,
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "bulk",
    duration: str = "60s",
    **settings: Any,
) -> Scenario:
    """Return flows over several bottlenecks in a row, and cross traffic at each.

    Parameters
    ----------
    hops : int, optional
        Number of links `hop-0`, `hop-1`, ..., up to 10,000.
    long, cross : int, optional
        Number of flows over all hops, the group `long`, and over each hop alone, the groups
        `cross-0`, `cross-1`, ...
    rate, delay : str, optional
        Rate and one-way delay of each hop.
    rtt : str, optional
        Round-trip propagation time of all flows; by default twice the delays that each crosses.
    qdisc, tcp, source, duration, **settings
        As of `dumbbell`; each hop has the discipline.

    Returns
    -------
    Scenario
        A valid scenario.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> [flow.name for flow in sj.parking_lot(2).flows]
    ['long', 'cross-0', 'cross-1']
    """
    count, each = _count("hops", hops, most=HOPS_MAX), _count("cross", cross)
    if count * each > FLOWS_MAX:
        total = f"{each} flows over each of {count} hops are {count * each}"
        raise InputError(f"cross: {total}, allowed: {FLOWS_MAX} in all")
    names = [f"hop-{i}" for i in range(count)]
    links = {name: Link(rate=rate, delay=delay, qdisc=qdisc) for name in names}

    def group(name: str, count: int, path: list[str]) -> Flow:
        trip = _round_trip(delay, len(path)) if rtt is None else rtt
        return Flow(name=name, count=count, path=path, rtt=trip, tcp=tcp, source=source)

    flows = [group("long", _count("long", long), names)]
    flows += [group(f"cross-{i}", each, [name]) for i, name in enumerate(names)]
    return checked("parking-lot", duration, links, flows, settings)


@public
def star(
    senders: int = 16,
    *,
    rate: str = "10gbit",
    delay: str = "5us",
    buffer: str = "250kB",
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "incast(size=64kB)",
    duration: str = "1s",
    **settings: Any,
) -> Scenario:
    """Return senders and one receiver at a switch: incast.

    Parameters
    ----------
    senders : int, optional
        Number of senders, the group `servers`, each with a link `uplink-0`, `uplink-1`, ...; up to
        100,000.
    rate, delay : str, optional
        Rate and one-way delay of each link.
    buffer : str, optional
        Buffer of the link `downlink` from the switch to the receiver, the bottleneck. It is the
        limit of `qdisc` unless that has one.
    qdisc : str, mapping or Qdisc, optional
        Discipline of `downlink`.
    source : str, mapping or Source, optional
        Traffic source. The default answers one query of the receiver after the other, all senders
        at the same time.
    tcp, duration, **settings
        As of `dumbbell`.

    Returns
    -------
    Scenario
        A valid scenario. Acknowledgements return with a pure delay.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> result = sj.simulate(sj.star(4, duration="100ms"))
    >>> len(result.queries["duration_s"]) > 50
    True
    """
    count = _count("senders", senders, most=LINKS_MAX)
    down = {"limit": buffer, **table(qdisc)}
    links = {f"uplink-{i}": Link(rate=rate, delay=delay) for i in range(count)}
    links["downlink"] = Link(rate=rate, delay=delay, qdisc=down)
    flow = Flow(
        name="servers",
        count=count,
        path=[_each("uplink", count), "downlink"],
        rtt=_round_trip(delay, 2),
        tcp=tcp,
        source=source,
    )
    return checked("star", duration, links, [flow], settings)


@public
def two_way_line(
    *,
    down: str = "50mbit",
    up: str = "10mbit",
    delay: str = "10ms",
    down_qdisc: Named = "droptail",
    up_qdisc: Named = "droptail",
    downloads: int = 1,
    uploads: int = 1,
    calls: int = 1,
    tcp: Named = "cubic",
    duration: str = "60s",
    **settings: Any,
) -> Scenario:
    """Return an access line with traffic in both directions; acknowledgements cross it, too.

    Parameters
    ----------
    down, up : str, optional
        Rates of the links `down` and `up`.
    delay : str, optional
        One-way delay of each direction.
    down_qdisc, up_qdisc : str, mapping or Qdisc, optional
        Disciplines of the links.
    downloads, uploads : int, optional
        Number of bulk flows of the groups `download` and `upload`; 0 for none.
    calls : int, optional
        Number of voice calls, 64 kbit/s of UDP in each direction: the groups `call-down` and
        `call-up`; 0 for none.
    tcp, duration, **settings
        As of `dumbbell`.

    Returns
    -------
    Scenario
        A valid scenario.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> line = sj.two_way_line(down="20mbit", up="2mbit", up_qdisc="fq_codel")
    >>> sj.simulate(line.replace(duration="10s")).flows["call-up"].delay_p99_s < 0.1
    True
    """
    links = {
        "down": Link(rate=down, delay=delay, qdisc=down_qdisc),
        "up": Link(rate=up, delay=delay, qdisc=up_qdisc),
    }
    flows = []
    for name, count, way in [
        ("download", downloads, ["down", "up"]),
        ("upload", uploads, ["up", "down"]),
    ]:
        if _count(f"{name}s", count, least=0):
            flows.append(Flow(name=name, count=count, path=way[:1], return_path=way[1:], tcp=tcp))
    voice = {"name": "cbr", "rate": "64kbit", "packet": "200B"}
    if _count("calls", calls, least=0):
        flows += [Flow(name=f"call-{d}", count=calls, path=[d], source=voice) for d in links]
    if not flows:
        raise InputError("downloads, uploads, calls: all are 0; a scenario needs a flow")
    return checked("two-way-line", duration, links, flows, settings)


def _each(name: str, count: int) -> str:
    """Return the link of each flow of a group: with its number, if the group has one."""
    return f"{name}-{{i}}" if count > 1 else f"{name}-0"


def _count(key: str, value: object, *, least: int = 1, most: int = FLOWS_MAX) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{key}: {shown(value)} is not a whole number, {least} to {most}")
    return value


def _round_trip(delay: str, links: int) -> str:
    """Return the round-trip time over so many links of the one-way delay `delay`."""
    one_way = of_link("delay", "delay", delay)
    unit = one_way.lstrip("0123456789")
    return f"{2 * links * int(one_way.removesuffix(unit))}{unit}"


def checked(
    name: str, duration: str, links: Mapping[str, Any], flows: Sequence[Any], settings: Any
) -> Scenario:
    """Return the scenario, validated as a whole."""
    case = Scenario(**{"name": name, "duration": duration, **settings}, links=links, flows=flows)
    canonical(case)
    return case
