"""Loads between hosts: the offered load is what is stated, by every definition and pattern."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from sojourn._util.paths import host_of
from sojourn._util.size_table import named_tables
from sojourn.fabric import sizes
from sojourn.fabric.routes import Network


def leaf_spine(racks: int = 3, hosts: int = 2, spines: int = 2) -> dict[str, Any]:
    """Return the links of racks of hosts at 1 Gbit/s, and spines at 2 Gbit/s."""
    links: dict[str, Any] = {}

    def connect(a: str, b: str, rate: str) -> None:
        links.update({f"{a}-{b}": {"rate": rate, "delay": "1us"}})
        links.update({f"{b}-{a}": {"rate": rate, "delay": "1us"}})

    for host in range(racks * hosts):
        connect(f"h{host}", f"t{host // hosts}", "1gbit")
    for rack in range(racks):
        for spine in range(spines):
            connect(f"t{rack}", f"s{spine}", "2gbit")
    return links


def run(traffic: dict[str, Any], **keys: Any) -> sj.Result:
    """Run a load for two seconds."""
    flows = [{"name": "load", "traffic": traffic}]
    return sj.simulate({"duration": "2s", "links": leaf_spine(), "flows": flows, **keys})


def offered(result: sj.Result) -> Any:
    """Return the transfers with the links that each crosses; few are unfinished at these loads."""
    frame = sj.fct_table(result)
    unfinished = sum(flow["unfinished"] for flow in result.flows.values())
    assert unfinished < 0.002 * len(frame)
    return frame


def payload_load(frame: Any, seconds: float = 2.0, bps: float = 1e9) -> float:
    """Return the payload as a share of the rate."""
    return float(8 * frame["bytes"].sum() / seconds / bps)


@pytest.mark.parametrize("gaps", ["poisson", "lognormal(sigma=1)"])
@pytest.mark.parametrize("pattern", ["all-to-all", "permutation"])
def test_the_load_of_hosts_is_the_mean_of_their_links(pattern: str, gaps: str) -> None:
    """Within three standard errors: 2 % for 24,000 Poisson arrivals of 5 kB."""
    frame = offered(run({"load": 0.08, "pattern": pattern, "size": "5kB", "gaps": gaps}))
    error = 3 / len(frame) ** 0.5 * (1.4 if gaps == "poisson" else 1.4 * 1.31)
    assert payload_load(frame) / 6 == pytest.approx(0.08, rel=error)
    pairs = Counter(zip(frame["sender"], frame["receiver"], strict=True))
    assert len(pairs) == (30 if pattern == "all-to-all" else 6)
    mean = len(frame) / len(pairs)
    assert all(abs(count - mean) < 5 * mean**0.5 for count in pairs.values())


def test_the_gaps_have_the_distribution_that_is_asked_for() -> None:
    """Coefficient of variation 1 for Poisson arrivals, sqrt(e - 1) for sigma 1."""
    for gaps, expected in [("poisson", 1.0), ("lognormal(sigma=1)", 1.3108)]:
        frame = offered(run({"load": 0.08, "size": "5kB", "gaps": gaps}))
        between = np.diff(frame["start_s"].to_numpy())
        assert between.std() / between.mean() == pytest.approx(expected, rel=0.06)


def test_the_load_of_a_link_and_of_the_most_loaded_link() -> None:
    """Counted from the paths of the transfers that ran."""
    for of in ("h1-t0", "t0-s1", "most"):
        result = run({"load": 0.1, "of": of, "size": "5kB", "paths": 8})
        frame, groups = offered(result), {g["name"]: g for g in result.scenario["flows"]}
        path = {name: groups["load"]["path"][i] for i, name in enumerate(result.flows)}
        per_link: Counter[str] = Counter()
        for flow, size in frame.select("flow", "bytes").iter_rows():
            per_link.update(dict.fromkeys(path[flow], size))
        rates = {name: 2e9 if "s" in name else 1e9 for name in per_link}
        loads = {name: 8 * total / 2.0 / rates[name] for name, total in per_link.items()}
        stated = max(loads.values()) if of == "most" else loads[of]
        assert stated == pytest.approx(0.1, rel=0.07)


def test_a_load_on_the_wire_counts_headers() -> None:
    """Bytes of data packets on the links of the hosts, measured by the links themselves."""
    result = run({"load": 0.1, "measure": "wire", "size": "hadoop_hpcc"}, seed=3)
    sent = sum(
        link["departed_bytes"] for name, link in result.links.items() if name.startswith("h")
    )
    frame = offered(result)
    header, payload = 52, 1448
    wire = sum(size + header * max(1, -(-size // payload)) for size in frame["bytes"])
    # The sizes vary: the mean of some 5,000 with a coefficient of variation of 4.6.
    expected = sizes.mean("hadoop_hpcc") + header * sizes.mean_packets("hadoop_hpcc", payload)
    flows_per_s = 0.1 * 6e9 / 8 / expected
    assert len(frame) / 2 == pytest.approx(flows_per_s, rel=4 / len(frame) ** 0.5)
    assert sent > wire


def test_mean_packets_is_exact() -> None:
    """Compared with the quantiles of the tables in steps of one millionth."""
    share = (np.arange(1_000_000) + 0.5) / 1e6
    for name, table in named_tables().items():
        points = np.array(table["points"])
        quantiles = np.interp(share, points[:, 1], points[:, 0])
        packets = np.maximum(1, np.ceil(quantiles / 1448)).mean()
        assert sizes.mean_packets(name, 1448) == pytest.approx(packets, rel=0.002)
        assert sizes.mean(name) == pytest.approx(table["mean_bytes"])
    means = {"20kB": 20_000, "uniform(1kB, 3kB)": 2_000, "pareto(mean=5kB, shape=2)": 5_000}
    for text, mean in means.items():
        assert sizes.mean(text) == mean
    assert sizes.mean_packets("20kB", 1448) == 14


def test_racks_follow_their_matrix() -> None:
    """A row per sending rack."""
    matrix = [[0, 3, 0], [1, 0, 0], [0, 0, 4]]
    frame = offered(run({"load": 0.08, "pattern": "racks", "matrix": matrix, "size": "5kB"}))
    rack = {f"h{host}": host // 2 for host in range(6)}
    seen = Counter((rack[a], rack[b]) for a, b in frame.select("sender", "receiver").iter_rows())
    for (i, j), count in seen.items():
        assert count / len(frame) == pytest.approx(matrix[i][j] / 8, rel=0.05)
    assert payload_load(frame) / 6 == pytest.approx(0.08, rel=0.03)


def test_incast_over_background() -> None:
    """Bursts of different senders to one receiver, at their share of the capacity."""
    flows = [
        {"name": "load", "traffic": {"load": 0.1, "size": "5kB"}},
        {"name": "incast", "traffic": {
            "load": 0.02, "pattern": "incast", "senders": 4, "size": "10kB"}},
    ]  # fmt: skip
    result = sj.simulate({"duration": "2s", "links": leaf_spine(), "flows": flows})
    frame = sj.fct_table(result, "incast")
    assert payload_load(frame) / 6 == pytest.approx(0.02, rel=0.08)
    receivers: Counter[str] = Counter()
    for _, burst in frame.group_by("start_s"):
        assert burst["sender"].n_unique() == 4
        assert burst["receiver"].n_unique() == 1
        receivers[burst["receiver"][0]] += 1
    assert len(receivers) == 6
    assert payload_load(sj.fct_table(result, "load")) / 6 == pytest.approx(0.1, rel=0.03)


def test_seeds_draw_other_traffic_on_the_same_paths() -> None:
    """The scenario has the paths; the seed of the run draws times, pairs and sizes."""
    one, two = (run({"load": 0.02, "size": "5kB"}, seed=seed) for seed in (1, 2))
    assert one.scenario["flows"] == two.scenario["flows"]
    starts = [sj.fct_table(result)["start_s"].to_list() for result in (one, two)]
    assert starts[0] != starts[1]
    again = run({"load": 0.02, "size": "5kB"}, seed=1)
    assert again.summary == one.summary


@pytest.mark.parametrize("pattern", ["all-to-all", "incast"])
def test_threads_give_the_same_bytes(pattern: str) -> None:
    """Several connections of one time are opened on every number of threads."""
    traffic = {"load": 0.1, "pattern": pattern, "size": "20kB"}
    if pattern == "incast":
        traffic["senders"] = 4
    flows = [{"name": "load", "traffic": traffic}]
    case = {"duration": "50ms", "links": leaf_spine(), "flows": flows}
    one, two = (sj.simulate(case, threads=threads) for threads in (1, 2))
    assert one.summary == two.summary
    assert one.completions["start_s"].tolist() == two.completions["start_s"].tolist()


def test_a_sweep_varies_the_load() -> None:
    """As a key of the group; the goodput follows."""
    flows = [{"name": "load", "traffic": {"load": 0.02, "size": "5kB"}}]
    case = {"duration": "500ms", "links": leaf_spine(), "flows": flows}
    rows = sj.sweep(case, {"load.traffic.load": [0.02, 0.08]}, seeds=1)
    goodput = rows["load.goodput_bps"].to_list()
    assert 3 < goodput[1] / goodput[0] < 5


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no load": ({}, "load: null is no share of the rate"),
    "load": ({"load": "50%"}, 'load: "50%" is no share of the rate'),
    "of": ({"load": 0.5, "of": "h0-t9"}, 'of: unknown link "h0-t9", did you mean "h0-t0"?'),
    "unused": ({"load": 0.5, "of": "h4-t2", "hosts": ["h0", "h1"]}, "of: no flow crosses the link"),
    "hosts": ({"load": 0.5, "hosts": ["h0", "h9"]}, 'hosts: "h9" is no host'),
    "one": ({"load": 0.5, "hosts": ["h0"]}, "hosts: write the names of two or more hosts"),
    "pattern": ({"load": 0.5, "pattern": "all"}, 'pattern: unknown value "all"'),
    "senders": ({"load": 0.5, "senders": 3}, "senders: is of the pattern incast"),
    "fan-in": ({"load": 0.5, "pattern": "incast", "senders": 6}, "senders: 6 is no whole number"),
    "matrix": ({"load": 0.5, "pattern": "racks", "matrix": [[1]]}, "matrix: is no list of 3 rows"),
    "gaps": ({"load": 0.5, "gaps": "lognormal"}, 'gaps: "lognormal" is not poisson or lognormal('),
    "size": ({"load": 0.5, "size": "hadoop"}, "size: \"hadoop\" has several tables: hadoop_hpcc"),
    "wire": ({"load": 0.5, "measure": "wire", "size": "exponential(1kB)"}, "size: \"exponential"),
    "key": ({"load": 0.5, "pattern_": "incast"}, 'unknown key "pattern_", did you mean "pattern"?'),
    "most": ({"load": 0.5, "most": 0}, "most: 0"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_a_fault_is_named(fault: str) -> None:
    """With the path of the key."""
    traffic, message = REFUSED[fault]
    with pytest.raises(sj.InputError) as caught:
        run(traffic)
    text = str(caught.value)
    assert text.startswith("flows.load.")
    assert message in text


def used_shares(*, shared: bool) -> list[int]:
    """Return how many of the core links 2,000 flows over a 3-tier tree use, and the fullest one."""
    links: list[str] = []
    for a in range(4):
        links += [f"h{a}-e{a}", f"e{a}-h{a}"]
    for e in range(4):
        for a in range(4):
            agg = f"a{e // 2 * 4 + a}"
            links += [f"e{e}-{agg}", f"{agg}-e{e}"]
    for a in range(8):
        for c in range(4):
            core = f"c{a % 4 * 4 + c}"
            links += [f"a{a}-{core}", f"{core}-a{a}"]
    network = Network(links, 3, shared=shared)
    used = Counter(network.path("h0", "h3", port)[2] for port in range(2000))
    return [len(used), max(used.values())]


def test_one_hash_for_all_switches_polarises() -> None:
    """The second tier repeats the choice of the first: 4 of 16 links carry everything."""
    assert used_shares(shared=True)[0] == 4
    links, most = used_shares(shared=False)
    assert links == 16
    assert most < 170  # 125 and four standard deviations


def test_collisions_are_those_of_random_choices() -> None:
    """11 flows on 20 paths are all alone with the probability 20!/(9! 20^11) = 3.27 %."""
    links = ["h0-t0", "t1-h1"] + [f"{a}-{b}" for i in range(20) for a, b in
                                  (("t0", f"s{i}"), (f"s{i}", "t1"))]  # fmt: skip
    alone = 0
    for seed in range(4000):
        network = Network(links, seed)
        alone += len({network.path("h0", "h1", port) for port in range(11)}) == 11
    assert alone / 4000 == pytest.approx(0.0327, abs=4 * (0.0327 / 4000) ** 0.5)


def test_members_have_their_hosts() -> None:
    """A pair of hosts and a path per flow of the group."""
    result = run({"load": 0.01, "size": "5kB", "paths": 2})
    group = result.scenario["flows"][0]
    assert group["count"] == 60
    for i in range(group["count"]):
        path, back = group["path"][i], group["return_path"][i]
        sender, receiver = host_of(group, i, "sender"), host_of(group, i, "receiver")
        assert path[0].startswith(f"{sender}-")
        assert path[-1].endswith(f"-{receiver}")
        assert back[0].startswith(f"{receiver}-")
        assert back[-1].endswith(f"-{sender}")
