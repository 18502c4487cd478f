"""The paper `today`: senders and mixtures, effects, and the table of what survives."""

from typing import Any

import polars as pl
import pytest

from sojourn_lab.papers import today
from sojourn_lab.papers.today import dc, drr, ewfq, red, rules, senders, survives
from sojourn_lab.reproduction.judging import judge

AXES = {"axes": '["sender", "qdisc", "rate"]'}


def waits(**by_sender: tuple[float, float]) -> dict[str, pl.DataFrame]:
    """Return rows of `drr` with delays (s) of CoDel and DRR by sender, at one rate."""
    rows = [
        {"sender": s, "qdisc": q, "rate": 10, "seed": n, "wait_s": wait + n * 1e-5, **AXES}
        for s, pair in by_sender.items()
        for q, wait in zip(("codel", "drr"), pair, strict=True)
        for n in (1, 2, 3)
    ]
    return {"drr": pl.DataFrame(rows)}


def test_a_mixture_gives_half_of_each_group_to_each_tcp() -> None:
    """Groups are split, single flows take turns, UDP stays, packet sizes are the flow's own."""
    tcp = {"name": "newreno", "packet": "500B"}
    flows: list[dict[str, Any]] = [
        {"name": "many", "count": 4, "tcp": tcp},
        {"name": "a", "tcp": tcp},
        {"name": "udp", "source": {}},
        {"name": "b", "tcp": tcp},
    ]
    mixed = senders.assigned(flows, "cubic+bbr")
    used = {one["name"]: (one.get("count"), one.get("tcp", {}).get("name")) for one in mixed}
    assert used == {
        "many-cubic": (2, "cubic"),
        "many-bbr": (2, "bbr"),
        "a": (None, "cubic"),
        "udp": (None, None),
        "b": (None, "bbr"),
    }
    assert {one["tcp"]["packet"] for one in mixed if "tcp" in one} == {"500B"}
    assert senders.assigned(flows, senders.THEN) == flows
    assert [one["name"] for one in senders.assigned(flows, "bbr")] == ["many", "a", "udp", "b"]


def test_disciplines_mark_only_for_senders_with_ecn() -> None:
    """CUBIC with ECN and Prague are marked where the discipline can mark."""
    codel, tail = {"name": "codel"}, {"name": "droptail"}
    assert senders.marking(codel, "ecn") == {"name": "codel", "ecn": True}
    assert senders.marking(codel, "cubic+prague")["ecn"]
    assert senders.marking(codel, "cubic") == senders.marking(codel, senders.THEN) == codel
    assert senders.marking(tail, "ecn") == tail


@pytest.mark.parametrize("module", [drr, red])
def test_each_sender_has_as_many_flows_as_the_paper(module: Any) -> None:
    """Mixtures keep the number of flows; web users are split, too."""
    counts: dict[tuple[Any, ...], set[int]] = {}
    for labels, tree in module.experiment(full=True).points:
        key = tuple(value for name, value in labels.items() if name not in ("sender", "qdisc"))
        users = [one["source"].get("sessions", one.get("count", 1)) for one in tree["flows"]]
        counts.setdefault(key, set()).add(sum(users))
    assert all(len(number) == 1 for number in counts.values())


def test_in_the_data_centre_the_long_flow_has_the_second_tcp() -> None:
    """CUBIC sends the answers next to a long flow of the other TCP."""
    point = {"sender": "cubic+bbr", "qdisc": "codel", "kB": 10}
    trees = [tree for labels, tree in dc.experiments(full=True)["dc"].points if labels == point]
    (tree,) = trees
    assert {one["name"]: one["tcp"]["name"] for one in tree["flows"]} == {
        "long": "bbr",
        "short": "cubic",
    }


def test_survival_names_senders_and_effects() -> None:
    """All parts of a sender hold, one fails, or an interval includes the limit."""
    runs = waits(cubic=(0.005, 0.010), bbr=(0.015, 0.010), then=(0.004, 0.008))
    claim = next(one for one in today.CLAIMS if one.id == "005-C1")
    one = survives.of(claim, runs)
    assert (one.named(True), one.named(False), one.named(None)) == (
        "CUBIC", "BBR (0 of 1)", "none",
    )  # fmt: skip
    assert one.effect(True) == "delay x 0.501"
    assert one.effect(False) == "delay x 1.5"
    assert survives.count(one.parts["then"]) == "1 of 1"
    judged = judge(claim, runs)
    assert (judged.verdict, judged.shown()) == ("holds except with BBR", "1 of 2")
    table = survives.verdicts([claim], runs).row(0, named=True)
    assert table["survives with"] == "CUBIC"
    facts = survives.facts([claim])
    assert [facts[f"005-C1-{name}"](runs) for name in ("senders", "then")] == [
        "with CUBIC; not with BBR (0 of 1)", "1 of 1",
    ]  # fmt: skip
    worse = waits(cubic=(0.015, 0.010), bbr=(0.015, 0.010), then=(0.004, 0.008))
    assert facts["005-C1-senders"](worse) == (
        "with none of the senders; not with CUBIC (0 of 1), BBR (0 of 1)"
    )


def test_effects_have_a_range_for_each_quantity() -> None:
    """Ratios, differences and values are listed apart; missing ones are left out."""
    at = rules.At("cubic", "x", "goodput", "Mbit/s")
    more = [rules.more(at, [3.0, 3.1], [1.0, 1.0]), rules.more(at, [1.0, 1.1], [2.0, 2.0])]
    less = rules.less(rules.At("cubic", "y", "delay", "ms"), [1.0, 1.1], [0.0, 0.0])
    assert survives.effects([*more, less]) == "goodput -0.95 to +2.05 Mbit/s"
    assert survives.effects([less]) == ""


def five(**jains: float) -> dict[str, pl.DataFrame]:
    """Return rows of `ewfq` in the network with five sources: Jain's index of each buffer."""
    rows = [
        {"sender": "cubic", "network": "Five", "qdisc": name[:-3].rstrip("_"), "kB": int(name[-3:]),
         "seed": n, "jain": jain + n * 1e-5, "total": 10.0, **AXES}
        for name, jain in jains.items()
        for n in (1, 2, 3)
    ]  # fmt: skip
    return {"ewfq": pl.DataFrame(rows)}


@pytest.mark.parametrize(
    ("jains", "brief", "result"),
    [
        ((0.9, 0.9, 0.9, 0.9, 0.999), "150 kB", "holds"),
        ((0.9, 0.999, 0.999, 0.999, 0.999), "45 kB", "fails"),
        ((0.999, 0.999, 0.999, 0.999, 0.999), "30 kB", "fails"),
        ((0.9, 0.9, 0.9, 0.9, 0.9), "more than 150 kB", "fails"),
    ],
)
def test_wfq_needs_five_times_the_buffer_only_if_less_is_not_enough(
    jains: tuple[float, ...], brief: str, result: str
) -> None:
    """The smallest buffer with which WFQ is as good as EWFQ decides, whatever larger ones do."""
    wfq = {f"wfq_{kb:03}": jain for kb, jain in zip(ewfq.BUFFERS, jains, strict=True)}
    claim = next(one for one in today.CLAIMS if one.id == "005-C10")
    assert claim.check is not None
    last = claim.check(five(ewfq_030=0.9992, **wfq))[-1]
    assert (last.brief, last.result) == (brief, result)
