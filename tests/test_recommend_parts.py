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


def measured(shaped: bool) -> Measured:
    """Return the measure of a line with a round-trip time of 40 ms."""
    return Measured(shaped, 0.04)


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
    facts = measured(False)(run_of(flows[:3]))
    assert (facts["delay_s"], facts["loss"]) == (0.04, 0.05)
    assert measured(False)(run_of([flows[3]]))["delay_s"] == 0.05, "without one: the worst link's"
    assert measured(False)(run_of([flows[1]]))["loss"] == 0.0
    assert measured(False)(run_of([flows[3]], links={}))["delay_s"] == 0.0


def test_without_udp_the_delay_is_that_of_the_worst_link() -> None:
    """30 and 50 ms; no datagrams, no loss; an idle link has no delay."""
    facts = measured(False)(run_of([tcp("a", 1e6)]))
    assert (facts["delay_s"], facts["loss"], facts["transfer_s"]) == (0.05, 0.0, 0.0)
    idle = {
        "down": {"sojourn_p99_s": None, "sojourn_mean_s": None},
        "up": {"sojourn_p99_s": 0.0, "sojourn_mean_s": 0.0},
    }
    assert measured(False)(run_of([tcp("a", 1e6)], links=idle))["delay_s"] == 0.0


def test_use_is_a_share_of_the_line_not_of_the_shaper() -> None:
    """A shaper sends 19 of 20 Mbit/s, so 15.2 Mbit/s are 76 % of the line, 80 % of the shaper."""
    result = run_of([tcp("a", 10e6), tcp("a", 5.2e6), udp("call", 0.01)])
    assert measured(True)(result)["use"] == pytest.approx(15.2 / 20)
    assert measured(False)(result)["use"] == pytest.approx(15.2 / 19)
    assert measured(True).identity != measured(False).identity


def test_use_counts_the_links_of_endless_flows_only() -> None:
    """Both directions: 14.25 + 4.75 of 25 Mbit/s. Without endless flows there is no share."""
    both = [tcp("a", 14.25e6), tcp("b", 4.75e6, "up")]
    assert measured(True)(run_of(both))["use"] == pytest.approx(19 / 25)
    assert measured(True)(run_of([udp("call", 0.01)]))["use"] == 0.0


def test_the_capacity_of_a_trace_is_what_it_carried_per_share() -> None:
    """6 MB in 8 s at a utilisation of 0.75: 8 Mbit/s; an idle link has its nominal rate."""
    scenario = {
        "duration": "10s", "warmup": "2s",
        "links": {"l": {"rate": "19mbit", "trace": {"file": "x"}}, "plain": {"rate": "3mbit"}},
    }  # fmt: skip
    links = {"l": {"utilisation": 0.75, "departed_bytes": 6_000_000},
             "plain": {"utilisation": 0.5, "departed_bytes": 1}}  # fmt: skip
    result = cast(Result, SimpleNamespace(scenario=scenario, links=links))
    assert objective._capacity_bps(result, "l") == 8e6
    assert objective._capacity_bps(result, "plain") == 3e6
    links["l"]["utilisation"] = 0
    assert objective._capacity_bps(result, "l") == 19e6


def test_fairness_is_that_of_the_worst_group() -> None:
    """Jain's index of 1 and 3 Mbit/s is 16/20; of equal ones 1; one without endless flows is 1."""
    flows = [tcp("a", 1e6), tcp("a", 3e6), tcp("b", 2e6), tcp("b", 2e6)]
    assert measured(False)(run_of(flows))["jain"] == pytest.approx(0.8)
    assert measured(False)(run_of([*flows[2:], *flows[:2]]))["jain"] == pytest.approx(0.8)
    assert measured(False)(run_of([udp("call", 0.01)]))["jain"] == 1.0


def test_transfers_have_their_mean() -> None:
    """1 and 3 s; transfers of the group `request` are responses, not pages."""
    facts = measured(False)(run_of([tcp("a", 1e6)], took=[1.0, 3.0]))
    assert (facts["transfer_s"], facts["response_s"]) == (2.0, 0.0)
    facts = measured(False)(run_of([tcp("request", 1e6)], took=[1.0, 3.0]))
    assert (facts["transfer_s"], facts["response_s"]) == (0.0, 2.0)


def test_bulk_flows_wait_in_both_directions() -> None:
    """10 and 20 ms; a page takes three round trips and 50 kB at the faster rate."""
    facts = measured(False)(run_of([tcp("a", 1e6)]))
    assert facts["self_s"] == pytest.approx(0.03)
    assert facts["rtt_s"] == 0.04
    assert facts["page_s"] == pytest.approx(0.12 + 0.4 / 19)


def test_costs_are_the_formulas_of_the_page() -> None:
    """Computed from the formulas at one point; logarithms end at 0.001."""
    facts = facts_of(0.03) | {"loss": 0.02, "use": 0.8, "jain": 0.9}
    log, known = math.log, objective.OBJECTIVES
    new, loaded, page = 0.8, 0.8, 1.0  # 40 of 50 ms, 40 of 50 ms, faster than the ideal
    mean = (new + loaded + page) / 3
    assert known["balance"](facts) == pytest.approx(log(2) - log(mean) - log(0.8))
    assert known["throughput"](facts) == pytest.approx(log(2) - log(mean) - 4 * log(0.8))
    expected = log(2) - log(mean) - log(0.8) - 4 * log(0.9)
    assert known["fairness"](facts) == pytest.approx(expected)
    call = (new + loaded + page + 3 * 50 / 80) / 6
    assert known["calls"](facts) == pytest.approx(log(4) - log(call) - log(0.8))
    game = (new + loaded + page + 3 * 20 / 50) / 6
    assert known["games"](facts) == pytest.approx(log(20) - log(game) - 0.5 * log(0.8))
    assert known["balance"](facts | {"loss": 0.01}) == pytest.approx(-log(mean) - log(0.8))
    none = facts | {"response_s": 0.0, "transfer_s": 0.0, "loss": 0.0, "use": 0.0}
    assert known["balance"](none) == pytest.approx(-log(loaded) - log(0.001))


def test_the_wait_of_bulk_flows_has_a_price() -> None:
    """A target of 57 ms has more use than the default, and 93 in place of 21 ms of wait."""
    usual = facts_of(0.0013) | {"self_s": 0.021, "use": 0.841, "response_s": 0.06, "rtt_s": 0.05}
    deep = usual | {"delay_s": 0.0006, "self_s": 0.093, "use": 0.875}
    for name in ("balance", "calls", "games", "fairness"):
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
