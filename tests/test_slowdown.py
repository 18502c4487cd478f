"""Slowdowns of transfers: exact for a lone transfer, and never below 1."""

import random
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from sojourn import metrics
from sojourn._util.paths import compared_link
from sojourn.result.ideal import completion_times_s

SOURCES: list[dict[str, Any]] = [
    {"name": "transfers", "size": "lomax(mean=20kB, shape=1.5)", "gap": "exponential(30ms)"},
    {"name": "transfers", "size": "1B", "gap": "10ms"},
    {"name": "transfers", "size": "{mss}B", "gap": "20ms"},
    {"name": "poisson", "size": "exponential(8kB)", "interval": "exponential(25ms)"},
    {"name": "incast", "size": "30kB", "gap": "20ms"},
    {"name": "incast", "size": "12kB", "gap": "10ms", "persistent": True},
    {"name": "sessions", "interval": "exponential(50ms)", "size": "exponential(6kB)"},
    {"name": "web", "page_gap": "50ms", "sessions": 3, "objects": "uniform(1, 4)"},
    {"name": "web", "page_gap": "50ms", "sessions": 3, "request": True},
    {
        "name": "video",
        "segment": "200ms",
        "highest": "2mbit",
        "buffer": "2s",
        "reservoir": "400ms",
        "cushion": "1s",
        "resume": "200ms",
    },
]

TCPS: list[dict[str, Any]] = [
    {"name": "newreno"},
    {"name": "cubic", "initial_window": "1000p"},
    {"name": "reno", "profile": "ns2"},
    {"name": "bbr"},
    {"name": "compound", "pacing": True},
    {"name": "linux_cubic"},
    {"name": "sack", "delayed_ack": False, "initial_window": "64p"},
]


def case(rng: random.Random, source: dict[str, Any], **link: Any) -> dict[str, Any]:
    """Return a scenario with a random path, sizes of packets, propagation times and TCP."""
    hops, count = rng.randint(1, 4), rng.randint(1, 3)

    def one() -> dict[str, Any]:
        delay = rng.choice([0, 3, 250, 4000, 15_000])
        return {
            "rate": f"{rng.choice([700, 3001, 10_000, 96_007, 1_000_000, 40_000_000])}kbit",
            "delay": f"{delay}us",
            "qdisc": rng.choice(["droptail", "codel", "fq_codel"]),
            **link,
        }

    links = {f"hop-{n}": one() for n in range(hops)} | {f"nic-{i}": one() for i in range(count)}
    links["back"] = one()
    header = rng.choice([20, 40, 52, 78])
    packet = header + rng.choice([61, 536, 1000, 1460, 8900])
    path = ["nic-{i}", *(f"hop-{n}" for n in range(hops))][rng.randint(0, 1) :]
    settings = {
        key: value.replace("{mss}", str(packet - header)) if isinstance(value, str) else value
        for key, value in source.items()
    }
    tcp = {**rng.choice(TCPS), "packet": f"{packet}B", "header": f"{header}B"}
    flow = {"name": "f", "count": count, "path": path, "source": settings, "tcp": tcp}
    if "request" in source or rng.random() < 0.5:
        flow["return_path"] = ["back"]
    if rng.random() < 0.5:
        flow["rtt"] = rng.choice(["80ms", "uniform(80ms, 120ms)"])
    cross = {"name": "cross", "path": ["hop-0"], "source": "cbr(rate=300kbit)"}
    flows = [flow, cross] if rng.random() < 0.5 else [flow]
    return {"duration": "1500ms", "seed": rng.randint(1, 99), "links": links, "flows": flows}


@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")  # ns-2's clock on short paths
@pytest.mark.parametrize("source", SOURCES, ids=lambda s: f"{s['name']}-{len(s)}")
def test_a_slowdown_is_at_least_1(source: dict[str, Any]) -> None:
    """On random paths, with every source that has completions."""
    rng = random.Random(str(source))
    number = 0
    for _ in range(12):
        tree = case(rng, source)
        values = metrics.slowdowns(sj.simulate(tree))
        assert np.all(values >= 1), (values.min(), tree)
        number += len(values)
    assert number > 20


@pytest.mark.parametrize(
    "link",
    [
        {"burst": "30kB"},
        {"trace": {"t_ns": [0, 90_000_000, 120_000_000], "rate_bps": [10**6, 10**8, 3 * 10**6],
                   "repeat": "200ms"}},
        {"trace": {"t_ns": [0, 90_000_000], "delay_ns": [4_000_000, 1_000_000]}},
    ],
    ids=["bucket", "rates", "delays"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")  # ns-2's clock on short paths
def test_a_slowdown_is_at_least_1_on_links_that_vary(link: dict[str, Any]) -> None:
    """Token buckets, and traces of rates or delays."""
    rng = random.Random(1)
    number = 0
    for source in SOURCES[:5] * 2:
        tree = case(rng, source, **link)
        tree["changes"] = [{"at": "700ms", "links": {"hop-0": {"rate": "200mbit", "delay": "0s"}}}]
        if "trace" in link:
            del tree["changes"]
        values = metrics.slowdowns(sj.simulate(tree))
        assert np.all(values >= 1), (values.min(), tree)
        number += len(values)
    assert number > 20


@pytest.mark.parametrize("size", [1, 1460, 1461, 14_600, 100_000])
@pytest.mark.parametrize("back", [False, True])
def test_a_lone_transfer_that_no_window_limits_has_a_slowdown_of_1(size: int, back: bool) -> None:
    """Over three links of different rates, with `rtt` beyond the links."""
    links = {
        "a": {"rate": "100mbit", "delay": "1ms"},
        "b": {"rate": "7mbit", "delay": "3ms"},
        "c": {"rate": "33mbit", "delay": "11ms"},
    }
    flow = {
        "name": "f", "path": ["a", "b", "c"], "rtt": "37ms",
        "source": f"transfers(size={size}B, number=3, gap=100ms)",
        "tcp": "cubic(initial_window=1000p)",
    }  # fmt: skip
    if back:
        flow |= {"return_path": ["d"]}
        links |= {"d": {"rate": "1mbit", "delay": "5ms"}}
    result = sj.simulate({"duration": "5s", "links": links, "flows": [flow]})
    assert np.allclose(metrics.slowdowns(result), [1, 1, 1], rtol=1e-6)
    assert np.all(metrics.slowdowns(result) >= 1)


def test_the_ideal_by_hand() -> None:
    """Two packets of 1500 B and one of 540 B over 10 and 1 Mbit/s, 5 ms each, 30 ms of rtt."""
    links = {name: {"rate": rate, "delay": "5ms"} for name, rate in
             [("a", "10mbit"), ("b", "1mbit")]}  # fmt: skip
    flow = {"name": "f", "path": ["a", "b"], "rtt": "30ms",
            "source": "transfers(size=3420B, number=1)", "tcp": "newreno"}  # fmt: skip
    result = sj.simulate({"duration": "2s", "links": links, "flows": [flow]})
    handshake = 0.03 + 40 * 8 / 10e6 + 40 * 8 / 1e6
    first_hop, slowest = 1500 * 8 / 10e6, (1500 + 1500 + 540) * 8 / 1e6
    ideal = completion_times_s(result, dict(result.completions))
    assert ideal == pytest.approx([handshake + 0.01 + first_hop + slowest])
    assert metrics.slowdowns(result) == pytest.approx([1], abs=1e-7)


def test_slow_start_counts_as_delay() -> None:
    """20 packets of a window of 10 need one more round trip than the ideal."""
    link = sj.Link(rate="1gbit", delay="10ms")
    flow = sj.Flow(name="f", path=["l"], rtt="20ms", tcp=sj.tcp.Cubic(delayed_ack=False),
                   source="transfers(size=29200B, number=1)")  # fmt: skip
    result = sj.simulate(sj.Scenario(duration="1s", links={"l": link}, flows=[flow]))
    assert metrics.slowdown_mean(result) == pytest.approx(5 / 3, rel=0.01)
    assert metrics.slowdown_mean(result, "f", (0, 29_200)) is None
    assert metrics.slowdown_mean(result, "f", (0, 29_201)) == metrics.slowdown_mean(result)


def test_one_way_delay_does_not_change_the_slowdown() -> None:
    """However much of `rtt` the link accounts for."""
    for delay in ("0s", "10ms", "20ms"):
        flow = sj.Flow(
            name="f", path=["l"], rtt="20ms", source="transfers(size=1460B, number=2, gap=1ms)"
        )
        link = sj.Link(rate="10mbit", delay=delay)
        result = sj.simulate(sj.Scenario(duration="2s", links={"l": link}, flows=[flow]))
        assert metrics.slowdowns(result) == pytest.approx([1, 1], abs=1e-7)


def test_delivery_opportunities_have_no_ideal() -> None:
    """The message names the link and a way out."""
    trace = {"opportunities_ms": [1, 2, 3]}
    tree = {"duration": "1s", "links": {"l": {"rate": "12mbit", "trace": trace}},
            "flows": [{"name": "f", "path": ["l"], "source": "transfers(size=1kB)"}]}  # fmt: skip
    with pytest.raises(sj.InputError, match=r"links\.l\.trace: has delivery opportunities"):
        metrics.slowdowns(sj.simulate(tree))


def test_links_of_a_path_with_the_index_of_the_flow() -> None:
    """Metrics, explanations and the compared link resolve `{i}`."""
    scenario = sj.star(4, duration="100ms", qdisc="codel(ecn=true)", tcp="dctcp")
    result = sj.simulate(scenario)
    assert (metrics.slowdown_mean(result) or 0) > 1
    assert all(finding.text for finding in sj.explain(result))
    assert compared_link(result.scenario, None) == "downlink", "the link that all flows cross"
    links = {"n-0": {"rate": "1mbit"}, "n-1": {"rate": "9mbit"}}
    group = {"name": "f", "count": 2, "path": ["n-{i}"], "rtt": "1ms",
             "source": "transfers(size=50kB, number=1)"}  # fmt: skip
    each = sj.simulate({"duration": "1s", "links": links, "flows": [group]})
    ideal = completion_times_s(each, dict(each.completions))
    by_flow = dict(zip(each.completions["flow"].tolist(), ideal.tolist(), strict=True))
    assert by_flow[0] > 8 * by_flow[1], "each by the rate of its own link"
