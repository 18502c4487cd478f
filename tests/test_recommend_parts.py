"""Parts of `recommend` on facts made by hand: facts of a run, costs, settings, scripts."""

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import sojourn as sj
from sojourn import metrics
from sojourn.recommendation import line, objective, script, settings
from sojourn.recommendation.link_layer import LAYERS, layer_of
from sojourn.recommendation.objective import Measured
from sojourn.result.result import Result
from sojourn.scenario.draft import canonical
from support.searches import HOME, facts_of


def run_of(flows: Sequence[Mapping[str, Any]], **summary: Any) -> Result:
    """Return what `Measured` reads of a run: two links, a group of each name, transfers."""
    groups = {
        str(flow["group"]): {
            "name": flow["group"],
            "path": [flow.get("link", "down")],
            "source": {"name": flow.get("source", "cbr")},
        }
        for flow in flows
    }
    took = np.array(summary.pop("took", []))
    kept = {
        "time_s": np.empty(0),
        "scenario": {
            "duration": "10s",
            "warmup": "2s",
            "flows": [*groups.values()],
            "links": {"down": {"rate": "19mbit"}, "up": {"rate": "4750kbit"}},
        },
        "flows": {str(n): dict(flow) for n, flow in enumerate(flows)},
        "links": {
            "down": {"sojourn_p99_s": 0.03, "sojourn_mean_s": 0.01},
            "up": {"sojourn_p99_s": 0.05, "sojourn_mean_s": 0.02},
        },
        "transfers": {"duration_s": took, "start_s": np.full(len(took), 3.0)},
    }
    return cast(Result, SimpleNamespace(**{**kept, **summary}))


def measured() -> Measured:
    """Return the measure of a line of 20 and 5 Mbit/s with a round-trip time of 40 ms."""
    return Measured(20e6, 5e6, 0.04)


def tcp(group: str, goodput_bps: float, link: str = "down") -> dict[str, Any]:
    """Return an endless TCP flow."""
    return {"group": group, "kind": "tcp", "goodput_bps": goodput_bps, "source": "bulk",
            "link": link}  # fmt: skip


def udp(group: str, delay_s: float | None, lost: int = 0, got: int = 100) -> dict[str, Any]:
    """Return a UDP flow."""
    return {"group": group, "kind": "udp", "goodput_bps": 1e6, "delay_p99_s": delay_s,
            "lost_packets": lost, "received_packets": got}  # fmt: skip


@pytest.fixture(autouse=True)
def transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take completion times from the run that was written by hand: for its first group."""

    def times(run: Any, group: str) -> Any:
        first = run.scenario["flows"][0]["name"]
        return run.transfers["duration_s"] if group == first else np.empty(0)

    monkeypatch.setattr(metrics, "completion_times_s", times)


def test_delay_and_loss_are_those_of_all_udp_flows() -> None:
    """The largest delay, wherever it is; 5 + 10 of 300 datagrams lost; others have no delay."""
    flows = [udp("a", 0.01, 5, 95), udp("b", 0.04, 0, 100), udp("c", 0.02, 10, 90), udp("d", None)]
    facts = measured()(run_of(flows[:3]))
    assert (facts["delay_s"], facts["loss"]) == (0.04, 0.05)
    assert measured()(run_of([flows[3]]))["delay_s"] == 0.05, "without one: the worst link's"
    assert measured()(run_of([flows[1]]))["loss"] == 0.0
    assert measured()(run_of([flows[3]], links={}))["delay_s"] == 0.0


def test_without_udp_the_delay_is_that_of_the_worst_link() -> None:
    """30 and 50 ms; no datagrams, no loss; an idle link has no delay."""
    facts = measured()(run_of([tcp("a", 1e6)]))
    assert (facts["delay_s"], facts["loss"], facts["transfer_s"]) == (0.05, 0.0, 0.0)
    idle = {
        "down": {"sojourn_p99_s": None, "sojourn_mean_s": None},
        "up": {"sojourn_p99_s": 0.0, "sojourn_mean_s": 0.0},
    }
    assert measured()(run_of([tcp("a", 1e6)], links=idle))["delay_s"] == 0.0


def test_use_is_a_share_of_the_line_not_of_the_shaper() -> None:
    """A shaper sends 19 of 20 Mbit/s, so 15.2 Mbit/s are 76 % of the line."""
    result = run_of([tcp("a", 10e6), tcp("a", 5.2e6), udp("call", 0.01)])
    assert measured()(result)["use"] == pytest.approx(15.2 / 20)
    assert measured().identity != Measured(20e6, 6e6, 0.04).identity


def test_use_counts_the_links_of_endless_flows_only() -> None:
    """Both directions: 14.25 + 4.75 of 25 Mbit/s. Without endless flows there is no share."""
    both = [tcp("a", 14.25e6), tcp("b", 4.75e6, "up")]
    assert measured()(run_of(both))["use"] == pytest.approx(19 / 25)
    assert measured()(run_of([udp("call", 0.01)]))["use"] == 0.0


def test_the_capacity_of_a_trace_is_what_it_carried_per_share() -> None:
    """6 MB in 8 s at a utilisation of 0.75: 8 Mbit/s; an idle link has its nominal rate."""
    scenario = {
        "duration": "10s", "warmup": "2s",
        "links": {"l": {"rate": "19mbit", "trace": {"file": "x"}}, "plain": {"rate": "3mbit"}},
    }  # fmt: skip
    links = {"l": {"utilisation": 0.75, "departed_bytes": 6_000_000},
             "plain": {"utilisation": 0.5, "departed_bytes": 1}}  # fmt: skip
    result = cast(Result, SimpleNamespace(scenario=scenario, links=links))
    assert objective._capacity_bps(result, "l", 20e6) == 8e6
    assert objective._capacity_bps(result, "plain", 4e6) == 4e6
    links["l"]["utilisation"] = 0
    assert objective._capacity_bps(result, "l", 20e6) == 20e6


def test_fairness_is_that_of_the_worst_group() -> None:
    """Jain's index of 1 and 3 Mbit/s is 16/20; of equal ones 1; one without endless flows is 1."""
    flows = [tcp("a", 1e6), tcp("a", 3e6), tcp("b", 2e6), tcp("b", 2e6)]
    assert measured()(run_of(flows))["jain"] == pytest.approx(0.8)
    assert measured()(run_of([*flows[2:], *flows[:2]]))["jain"] == pytest.approx(0.8)
    assert measured()(run_of([udp("call", 0.01)]))["jain"] == 1.0


def test_transfers_have_their_mean() -> None:
    """1 and 3 s; transfers of the group `request` are responses, not pages."""
    facts = measured()(run_of([tcp("a", 1e6)], took=[1.0, 3.0]))
    assert (facts["transfer_s"], facts["response_s"]) == (2.0, 0.0)
    facts = measured()(run_of([tcp("request", 1e6)], took=[1.0, 3.0]))
    assert (facts["transfer_s"], facts["response_s"]) == (0.0, 2.0)


def test_bulk_flows_wait_in_both_directions() -> None:
    """10 and 20 ms; a page takes three round trips and 50 kB at the faster rate."""
    facts = measured()(run_of([tcp("a", 1e6)]))
    assert facts["self_s"] == pytest.approx(0.03)
    assert facts["rtt_s"] == 0.04
    assert facts["page_s"] == pytest.approx(0.12 + 0.4 / 20)


def test_the_worst_window_is_the_largest_sum_of_both_directions() -> None:
    """After the warm-up of 2 s: 30 + 1 ms, not the 90 ms before it; an idle link delays nothing."""
    waits = {"down": [0.09, 0.01, 0.03, np.nan], "up": [0.0, 0.02, 0.001, 0.025]}
    links = {
        way: SimpleNamespace(series={"sojourn_s": np.array(values)})
        for way, values in waits.items()
    }
    run: Any = SimpleNamespace(
        time_s=np.array([2.0, 4.0, 6.0, 8.0]), scenario={"warmup": "2s"}, links=links
    )
    assert objective._worst(run) == pytest.approx(0.031)
    run.time_s = np.empty(0)
    assert objective._worst(run) == 0.0


def test_hosts_share_a_direction() -> None:
    """3 x 2 of one host and 2 Mbit/s of another: 64/80; without names each flow is a host."""
    flows = [*[tcp("a", 2e6)] * 3, tcp("b", 2e6), tcp("c", 1e6, "up"), tcp("c", 1e6, "up")]
    run = run_of(flows)
    assert measured()(run)["hosts"] == 1.0
    groups = run.scenario["flows"]
    groups[0]["receiver"], groups[1]["receiver"] = "busy", "quiet"
    assert measured()(run)["hosts"] == pytest.approx(0.8)
    groups[0]["receiver"] = groups[1]["receiver"] = "one"
    assert measured()(run)["hosts"] == 1.0
    groups[2]["sender"], groups[2]["receiver"] = "host-{i}", "server"
    assert objective._by_host(run, ["c"]) == [[1e6, 1e6]]
    groups[2]["sender"] = "host"
    assert objective._by_host(run, ["c"]) == [[2e6]]


def test_a_call_has_the_rating_of_the_e_model() -> None:
    """G.107: 0.024 per ms, 0.11 more beyond 177.3 ms; Bpl of 4.3 halves 95 at a loss of 4.3 %."""
    assert objective.rating(0.0, 0.0) == 1.0
    assert objective.rating(0.1, 0.0) == pytest.approx((93.2 - 2.4) / 93.2)
    assert objective.rating(0.2773, 0.0) == pytest.approx((93.2 - 6.6552 - 11) / 93.2)
    assert objective.rating(0.0, 0.043) == pytest.approx((93.2 - 47.5) / 93.2)
    assert objective.rating(2.0, 0.5) == 0.0


def test_costs_are_the_formulas_of_the_page() -> None:
    """Computed from the formulas at one point; logarithms end at 0.001."""
    facts = facts_of(0.03) | {"loss": 0.02, "use": 0.8, "jain": 0.9, "hosts": 0.95}
    log, known = math.log, objective.OBJECTIVES
    # 40 of 50 ms, 40 of 50 ms, 40 of 80 ms, faster than the ideal, 130 of 260 ms
    new, loaded, worst, page, tail = 0.8, 0.8, 0.5, 1.0, 0.5
    mean = (new + loaded + worst + page) / 4
    rest = -log(0.8) - log(0.95)
    assert known["home"](facts) == pytest.approx(log(2) - log(mean) + rest)
    server = (new + loaded + worst + 2 * page) / 5
    assert known["server"](facts) == pytest.approx(log(2) - log(server) + rest)
    centre = (new + loaded + worst + tail) / 4
    assert known["datacentre"](facts) == pytest.approx(log(2) - log(centre) + rest)
    assert known["throughput"](facts) == pytest.approx(log(2) - log(mean) - 3 * log(0.8) + rest)
    expected = log(2) - log(mean) - log(0.8) - 4 * log(0.9) - 4 * log(0.95)
    assert known["fairness"](facts) == pytest.approx(expected)
    rating = objective.rating(0.02 + 0.03, 0.02)
    call = (4 * mean + 4 * rating) / 8
    assert known["calls"](facts) == pytest.approx(log(4) - log(call) + rest)
    office = (4 * mean + 2 * rating) / 6
    assert known["office"](facts) == pytest.approx(log(4) - log(office) + rest)
    game = (4 * mean + 4 * 20 / 50) / 8
    expected = log(20) - log(game) - 0.5 * log(0.8) - log(0.95)
    assert known["games"](facts) == pytest.approx(expected)
    assert known["home"](facts | {"loss": 0.01}) == pytest.approx(-log(mean) + rest)
    none = facts | {"response_s": 0.0, "transfer_s": 0.0, "loss": 0.0, "use": 0.0}
    some = -log((loaded + worst) / 2) - log(0.001) - log(0.95)
    assert known["home"](none) == pytest.approx(some)


def test_the_objective_is_that_of_the_traffic() -> None:
    """Unless it is given; for a file it is "home"."""
    assert [objective.objective_of(None, name) for name in line.TRAFFICS] == [*line.TRAFFICS]
    assert objective.objective_of(None, "own.toml") == "home"
    assert objective.objective_of("games", "office") == "games"


def test_the_wait_of_bulk_flows_has_a_price() -> None:
    """A target of 57 ms has more use than the default, and 93 in place of 21 ms of wait."""
    usual = facts_of(0.0013) | {"self_s": 0.021, "use": 0.841, "response_s": 0.06, "rtt_s": 0.05}
    deep = usual | {"delay_s": 0.0006, "self_s": 0.093, "use": 0.875}
    for name in ("home", "office", "games", "fairness"):
        assert objective.OBJECTIVES[name](usual) < objective.OBJECTIVES[name](deep)


def test_deviations_are_round_and_single() -> None:
    """One parameter each, never the default, a target of at most half of the interval."""
    for name in settings.GRIDS:
        usual = settings.default(name, HOME)
        tables = settings.deviations(name, HOME)
        assert tables
        for one in tables:
            assert len(settings.changed(one, HOME)) == 1
            key = next(key for key in one if key not in usual)
            assert one[key] != settings.parameters(name)[key]["value"]
    targets = [one["target"] for one in settings.deviations("codel", HOME) if "target" in one]
    assert targets == ["2ms", "10ms", "20ms", "40ms"]
    intervals = [one["interval"] for one in settings.deviations("codel", HOME) if "interval" in one]
    assert intervals == ["20ms", "50ms", "200ms", "300ms", "600ms", "1s"]
    assert settings.deviations("red", HOME) == []
    assert not settings._has_room("interval", "9ms", settings.parameters("codel"))
    assert not settings._has_room("target", "51ms", settings.parameters("codel"))
    assert settings._has_room("target", "50ms", settings.parameters("codel"))


def test_the_value_nearest_to_the_default_is_first() -> None:
    """Of equally many words of one discipline; a default without a number is one step away."""
    tables = sorted(
        [settings.default("fq_codel", HOME), *settings.deviations("fq_codel", HOME)],
        key=lambda one: settings.rank(one, HOME),
    )
    assert tables[0] == {"name": "fq_codel"}
    times = [one["interval"] for one in tables if "interval" in one]
    assert times == ["50ms", "200ms", "300ms", "20ms", "600ms", "1s"]
    assert settings.rank({"name": "dualpi2", "target": "5ms"}, HOME) == (1, 2, 1.0)
    bare = line.make("20mbit", "5mbit", "20ms", "server")
    assert settings.rank({"name": "cake"}, HOME) < settings.rank({"name": "fq_codel"}, HOME)
    assert settings.rank({"name": "cake"}, bare) > settings.rank({"name": "fq_codel"}, bare)
    assert settings.rank({"name": "red"}, HOME) == (0, len(settings.ORDER), 0.0)


def test_a_data_centre_has_ecn_and_short_times() -> None:
    """Drop-tail has no ECN."""
    there = line.make("1gbit", "1gbit", "100us", "datacentre")
    assert settings.default("codel", there) == {"name": "codel", "ecn": True}
    assert settings.default("droptail", there) == {"name": "droptail"}
    assert settings.default("codel", HOME) == {"name": "codel"}
    tables = settings.deviations("fq_codel", there)
    assert {"name": "fq_codel", "ecn": True, "ce_threshold": "100us"} in tables
    assert settings.changed(tables[0], there) == ["ce_threshold 50us"]


def test_a_linux_name_is_an_alias_or_its_own() -> None:
    """Names in any case, with dashes, each once; "all" and none are all."""
    assert settings.candidates("FQ-CoDel, , pie,fq_codel") == ["fq_codel", "pie"]
    assert settings.candidates("all") == settings.candidates(None)
    with pytest.raises(sj.InputError, match='--only: unknown discipline " codle"'):
        settings.candidates("pie, codle")
    with pytest.raises(KeyError):
        settings.parameters("codle")


WIRE = {
    # bytes on the wire of a full packet and of an acknowledgement of 40 bytes
    "adsl-ipoa-vc": (1500, 1696, 53), "adsl-pppoa-llc": (1500, 1696, 106),
    "adsl-pppoe-llc": (1492, 1696, 106), "adsl": (1492, 1749, 106),
    "vdsl2-pppoe-vlan": (1492, 1550, 76), "vdsl2-ipoe": (1500, 1546, 63),
    "docsis": (1500, 1518, 64), "ethernet": (1500, 1538, 84), "ethernet-pppoe": (1492, 1538, 86),
}  # fmt: skip


@pytest.mark.parametrize("name", WIRE)
def test_a_link_layer_has_the_bytes_of_its_framing(name: str) -> None:
    """Cells of 53 bytes with 48 of payload; 65 bytes per 64; a smallest frame."""
    layer, (mtu, full, bare) = LAYERS[name], WIRE[name]

    def wire(size: int) -> int:
        size = max(size + layer.overhead, layer.mpu)
        if layer.framing == "atm":
            return math.ceil(size / 48) * 53
        return size + math.ceil(size / 64) if layer.framing == "ptm" else size

    assert (wire(mtu), wire(40)) == (full, bare)


def test_link_layers_have_other_names() -> None:
    """In any case; the size table leaves out the Ethernet header, except on PPP."""
    assert layer_of("ADSL_PPPoE") == LAYERS["adsl-pppoe-llc"]
    assert layer_of("vdsl2-ptm") == LAYERS["vdsl2-pppoe-vlan"]
    assert layer_of(None) is None
    with pytest.raises(sj.InputError, match="--link-layer: unknown link layer"):
        layer_of("isdn")
    words = LAYERS["adsl-pppoe-llc"].stab("eth0")
    assert words == "stab mtu 2047 tsize 512 mpu 0 overhead 26 linklayer atm "
    assert "overhead 40 linklayer atm" in LAYERS["adsl-pppoe-llc"].stab("ppp0")


def test_cake_has_its_words_by_direction() -> None:
    """Its own shaper; hosts, marks and dropped packets of each direction; thin ACKs at 10 to 1."""
    lines = script.install(HOME, {"name": "cake", "rtt": "300ms"}, "w0", "i0", LAYERS["docsis"])
    down, up = (one for one in lines if " cake " in one)
    words = "bandwidth 19000kbit besteffort dual-dsthost nat wash ingress docsis rtt 300ms"
    assert down == f"tc qdisc add dev i0 root handle 1: cake {words}"
    words = "bandwidth 4750kbit dual-srchost nat docsis rtt 300ms"
    assert up == f"tc qdisc add dev w0 root handle 1: cake {words}"
    thin = line.make("50mbit", "5mbit", "20ms", "home")
    text = "\n".join(script.install(thin, {"name": "cake"}, "w0", "i0", None))
    assert text.count("ack-filter") == 1
    assert "htb" not in text


def imported(text: str) -> dict[str, Mapping[str, Any]]:
    """Return the discipline of each device, as `sojourn tc import` reads commands."""
    adds = [
        one for one in text.splitlines() if one.startswith("tc qdisc add") and "ffff" not in one
    ]
    return {one["dev"]: one["qdisc"] for one in sj.tc.imported("\n".join(adds))}


def test_cake_is_simulated_as_it_is_installed() -> None:
    """The words of the commands are the parameters of the runs, apart from overhead and NAT."""
    for down in ("20mbit", "90mbit"):
        access = line.make(down, "5mbit", "20ms", "home")
        setting = {"name": "cake", "rtt": "300ms"}
        back = imported("\n".join(script.install(access, setting, "w0", "i0", None)))
        tree = line.scenario(access, setting, load=1.0, seed=1, shaped=True)
        for way, dev in (("down", "i0"), ("up", "w0")):
            link = tree["links"][way]
            assert (
                link["rate"] == f"{round(access.down_bps if way == 'down' else access.up_bps)}bit"
            )
            flow = {"name": "a", "path": [way], "rtt": "20ms"}
            whole = {"links": {way: link}, "flows": [flow], "duration": "1s"}
            theirs = {**whole, "links": {way: {**link, "qdisc": back[dev]}}}
            ours = canonical(whole)["links"][way]["qdisc"]
            other = canonical(theirs)["links"][way]["qdisc"]
            same = ("bandwidth", "rtt", "tins", "isolation", "wash", "ingress", "ack_filter", "ecn")
            assert {key: ours[key] for key in same} == {key: other[key] for key in same}
    bare = line.make("20mbit", "5mbit", "20ms", "server")
    tree = line.scenario(bare, {"name": "cake"}, load=1.0, seed=1, shaped=False)
    assert tree["links"]["up"] == {"rate": "5000000bit", "qdisc": {"name": "cake"}}


def test_htb_has_a_burst_and_a_quantum_by_its_rate() -> None:
    """A millisecond, at least a packet of cells; a quantum that the kernel accepts in silence."""
    for rate, burst, quantum in (("1mbit", 1749, 1749), ("100mbit", 11875, 11875),
                                 ("10gbit", 1187500, 200_000)):  # fmt: skip
        access = line.make(rate, rate, "20ms", "home")
        text = "\n".join(script.install(access, {"name": "codel"}, "w0", "i0", None))
        assert text.count(f"burst {burst} cburst {burst} quantum {quantum}") == 2
    access = line.make("50mbit", "10mbit", "20ms", "home")
    text = "\n".join(script.install(access, {"name": "codel"}, "w0", "i0", LAYERS["vdsl2-pppoe"]))
    assert f"rate {round(47500 * 64 / 65)}kbit" in text


def test_our_ifb_has_a_name_of_its_own() -> None:
    """At most 15 characters, as the kernel allows; other tools are left alone."""
    assert script.ifb_name("wan0") == "sj-wan0"
    assert script.ifb_name("a" * 15) == "sj-" + "a" * 12
    undone = script.undo("w0", "sj-w0", shaped=True)
    assert not any("ifb4" in one for one in undone)
    assert all("||" in one or one.startswith("if ") for one in undone)
    assert script.undo("w0", "sj-w0", shaped=False) == [
        "tc qdisc del dev w0 root 2>/dev/null || true"
    ]
