"""Scenarios of the cases: functions of the plan that return them by the name of the variant."""

from collections.abc import Callable
from typing import Any, TypeAlias

from sojourn.evaluation.setup import (
    LINK,
    RTT_S,
    Plan,
    Table,
    adaptive_video,
    alternating,
    call,
    frames,
    rate,
    scenario,
    tcp,
    time,
    udp,
    web,
)

Variants: TypeAlias = dict[str, Table]
"""Scenarios of a case by the name of the variant."""

Build: TypeAlias = Callable[[Plan], Variants]


def one_flow(control: str) -> Build:
    """Return a builder of one endless TCP flow."""
    return lambda plan: {"": scenario("one", plan, [tcp("bulk", control=control)])}


def short_transfers(plan: Plan) -> Variants:
    """Return short transfers of several sizes with an endless TCP flow."""
    scenarios = {}
    for packets in (30,) if plan.quick else (11, 30, 99):
        for window in (3, 10):
            short = {"name": "transfers", "size": f"{packets * 1460}B", "gap": "exponential(5s)"}
            flows = [
                tcp("bulk"),
                tcp("short", source=short, initial_window=f"{window}p"),
            ]
            scenarios[f"{packets} packets, initial window {window}"] = scenario(
                "short", plan, flows
            )
    return scenarios


def unresponsive(shares: tuple[float, ...], *, with_tcp: bool) -> Build:
    """Return a builder of UDP at shares of the rate, alone or with a TCP flow."""

    def build(plan: Plan) -> Variants:
        return {
            f"UDP at {share:g} of the rate": scenario(
                "udp",
                plan,
                [udp("udp", share * plan.rate_bps, 1000)] + ([tcp("bulk")] if with_tcp else []),
            )
            for share in shares
        }

    return build


def background(plan: Plan) -> Variants:
    """Return a LEDBAT flow and a standard TCP flow."""
    flows = [tcp("bulk"), tcp("background", control="ledbat", target="5ms", gain=10)]
    return {"": scenario("ledbat", plan, flows)}


def round_trips(control: str, **parameters: Any) -> Build:
    """Return a builder of two flows, the second with each of the round-trip times."""

    def build(plan: Plan) -> Variants:
        quick = (5, 20, 100, 250, 560)
        full = (5, 10, 20, 50, 80, 100, 120, 150, 200, 250, 300, 350, 400, 480, 560)
        scenarios = {}
        for ms in quick if plan.quick else full:
            flows = [
                tcp("first", control=control, **parameters),
                tcp("second", control=control, rtt_s=ms / 1e3, **parameters),
            ]
            scenarios[f"{ms}"] = scenario("rtt", plan, flows, rtt_s=max(RTT_S, ms / 1e3))
        return scenarios

    return build


def packet_sizes(plan: Plan) -> Variants:
    """Return flows with small and with large packets."""
    half = max(1, plan.flows("mild") // 2)
    flows = [tcp("small", half, packet="500B"), tcp("large", half)]
    return {"": scenario("sizes", plan, flows)}


def bursts(with_video: bool, bulk: int) -> Build:
    """Return a builder of web pages and constant bit rate, with video or bulk flows."""

    def build(plan: Plan) -> Variants:
        flows = [web(), udp("cbr", 1e6, 1000)]
        flows += frames(plan) if with_video else []
        flows += [tcp("bulk", bulk)] if bulk else []
        return {"": scenario("bursts", plan, flows)}

    return build


def congestion(level: str, **parameters: Any) -> Build:
    """Return a builder of TCP flows at a level of congestion."""
    return lambda plan: {"": scenario(level, plan, [tcp("bulk", plan.flows(level), **parameters)])}


PHASE_S = 20.0
"""Length of a phase of cases with varying load or capacity."""


def varying_load(plan: Plan) -> Variants:
    """Return flows that join and leave in phases."""
    mild, medium, heavy = (plan.flows(one) for one in ("mild", "medium", "heavy"))
    cycles = 1 if plan.quick else 4
    flows = [tcp("bulk", mild)]
    changes: list[Table] = []
    for k in range(cycles):
        begin = 3 * PHASE_S * k
        more, most = f"medium-{k}", f"heavy-{k}"
        flows += [tcp(more, medium - mild), tcp(most, heavy - medium)]
        changes += [
            {"at": time(begin + PHASE_S), "join": [more]},
            {"at": time(begin + 2 * PHASE_S), "join": [most]},
            {"at": time(begin + 3 * PHASE_S), "leave": [more, most]},
        ]
    lasts = 3 * PHASE_S * cycles + PHASE_S
    return {"": scenario("load", plan, flows, duration_s=lasts, changes=changes)}


def varying_rate(
    phase_s: float, lasts_s: float, first_s: float | None = None, *, bursts: bool = False
) -> Build:
    """Return a builder of ten flows over a link whose rate alternates."""

    def build(plan: Plan) -> Variants:
        link = alternating(
            10 * plan.rate_bps, plan.rate_bps, phase_s, phase_s if first_s is None else first_s
        )
        flows = [tcp("bulk", 10)]
        flows += [web(), udp("cbr", 1e6, 1000), *frames(plan)] if bursts else []
        lasts = 2 * phase_s * (lasts_s if not plan.quick else min(lasts_s, max(2, 15 / phase_s)))
        tree = scenario("capacity", plan, flows, link=link, duration_s=lasts + phase_s)
        return {"": {**tree, "packet_log": False}}

    return build


def mix(plan: Plan) -> Variants:
    """Return a call, web pages, constant bit rate, adaptive video and bulk flows."""
    flows = [call(), web(count=6), udp("cbr", 1e6, 1000), adaptive_video(), tcp("bulk", 5)]
    return {"": scenario("mix", plan, flows)}


def two_way(plan: Plan) -> Variants:
    """Return flows in both directions of a symmetric and an asymmetric line."""
    scenarios = {}
    for name, back in (
        ("symmetric", plan.rate_bps),
        ("a tenth of the rate back", plan.rate_bps / 10),
    ):
        there = {**tcp("bulk", plan.flows("mild")), "return_path": ["back"]}
        number = plan.flows("mild", back)
        other = {**tcp("upload", number, path=("back",)), "return_path": [LINK]}
        buffer = f"{plan.buffer(RTT_S, back)}B"
        reverse = {"rate": rate(back), "qdisc": {"name": "droptail", "limit": buffer}}
        flows = [there, other, call(), call("answer", ("back",))]
        scenarios[name] = scenario("two-way", plan, flows, links={"back": reverse})
    return scenarios


SERIES = "other"
"""Name of the second link of the case with two links in series."""


def in_series(plan: Plan) -> Variants:
    """Return flows over two links in series, whose second has another discipline."""
    half = max(1, plan.flows("mild") // 2)
    flows = [tcp("bulk", half, path=(LINK, SERIES)), tcp("joining", half, path=(SERIES,))]
    second = {
        "rate": rate(1.5 * plan.rate_bps),
        "qdisc": {"name": "droptail", "limit": f"{plan.buffer(RTT_S, 1.5 * plan.rate_bps)}B"},
    }
    same = scenario("series", plan, flows, links={SERIES: second})
    return {"the same discipline": same, "drop-tail behind it": same}


def sparse(plan: Plan) -> Variants:
    """Return a call and eight bulk flows."""
    flows = [tcp("bulk", 4), tcp("cubic", 4, "cubic"), call()]
    return {"": scenario("sparse", plan, flows)}
