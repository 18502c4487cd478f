"""Mutated sweep files: each is refused in one line before anything runs, or it runs."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from mutation import replaced, shuffled, toml
from sojourn import metrics
from sojourn.scenario.draft import canonical
from sojourn.sweeps.columns import ARGUMENTS
from sojourn.sweeps.spec import make_sweep, read_sweep, run_sweep

LINK = {"rate": "5mbit", "delay": "5ms", "qdisc": {"name": "codel", "target": "5ms"}}
SCENARIO: dict[str, Any] = {
    "duration": "50ms",
    "warmup": "5ms",
    "sample": "10ms",
    "packet_log": True,
    "links": {"up": LINK, "down": {"rate": "1mbit"}},
    "flows": [
        {"name": "x", "path": ["up"], "source": "cbr(rate=1mbit)"},
        {"name": "bulk", "count": 2, "path": ["up"], "return_path": ["down"]},
    ],
}
SWEEP: dict[str, Any] = {
    "scenario": "base.json",
    "seeds": [1, 2],
    "link": "up",
    "together": [["rate", "delay"]],
    "skip": [{"qdisc": "red", "x.count": 2}],
    "metrics": [
        "jain_index",
        {"name": "jitter_s", "flow": "x"},
        {"name": "goodput_bps", "group": "bulk"},
        {"name": "fct_percentile_s", "percent": 50, "group": "bulk"},
        {"name": "jain_index", "groups": ["x", "bulk"], "weights": [1, 2.5]},
        {"name": "slowdown_mean", "sizes": [0, 1e6]},
        {"name": "underflow_share", "link": "up", "from_s": 0.01},
        {"name": "loss_synchronisation", "window_s": 0.1},
        {"name": "tcp_goodput_bps", "wire": True},
    ],
    "axes": {
        "x.count": [1, 2],
        "qdisc": {"set": "up.qdisc", "values": ["red", "codel"]},
        "target": {"set": "up.qdisc.target", "values": ["1ms", "5ms"], "when": {"qdisc": "codel"}},
        "rate": {"set": ["up.rate", "down.rate"], "values": [5, 10], "unit": "mbit"},
        "delay": {"set": "up.delay", "from": 1, "to": 3, "step": 2, "unit": "ms"},
        "loss": {"set": "down.loss", "from": 0.01, "to": 0.1, "points": 2, "log": True},
        "back": {"set": "down.qdisc", "values": {"tight": {"name": "codel"}}},
    },
}
UNTIL = {"metrics": ["sojourn_p99_s", "bulk.goodput_bps"], "relative": 0.5, "least": 20, "most": 21}


def mutants() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return some thousands: of a file with seeds, and of one with `until` instead."""
    few = {**SWEEP, "axes": {k: SWEEP["axes"][k] for k in ("x.count", "qdisc")}, "until": UNTIL}
    del few["seeds"], few["together"]
    yield from replaced(SWEEP)
    yield from ((f"until: {name}", tree) for name, tree in replaced(few) if "until" in name)
    yield from shuffled(SWEEP, 600)
    yield from shuffled({**few, "scenario": SCENARIO}, 200, seed=2)


def refusal(path: Path) -> str | None:
    """Return the message that refuses a sweep file, or None; only InputError may be raised."""
    try:
        read_sweep(path)
    except sj.InputError as error:
        return str(error)
    return None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path for sweep files, in the folder of their scenario."""
    (tmp_path / "base.json").write_text(json.dumps(SCENARIO))
    return tmp_path / "sweep.toml"


def test_the_original_sweep_is_accepted(file: Path) -> None:
    """Otherwise its mutants would prove nothing."""
    file.write_text(toml(SWEEP))
    assert len(read_sweep(file).points) == 2 * (1 + 2) * 2 * 2 - 2 * 2


def test_mutated_sweep_files_are_refused_in_one_line_or_run(file: Path) -> None:
    """No traceback, and no refusal after runs."""
    refused, ran = 0, 0
    for n, (name, tree) in enumerate(mutants()):
        file.write_text(toml(tree))
        try:
            message = refusal(file)
            if message is not None:
                refused += 1
                assert "\n" not in message, message
                assert len(message) < 2000, message
                assert message.startswith(f"{file.parent}"), message
            elif n % 5 == 0:
                sweep = read_sweep(file)
                seeds = sweep.seeds[:1] if sweep.until is None else sweep.seeds
                few = [*sweep.points[:2], *sweep.points[-1:]]
                short = type(sweep)(sweep.base, sweep.names, few, seeds, sweep.measure, sweep.until)
                campaign = run_sweep(short, jobs=1)
                ran += 1
                json.dumps(campaign.rows, allow_nan=False)
                assert pl.DataFrame(campaign.rows, infer_schema_length=None).height >= 1
        except Exception as error:
            pytest.fail(
                f"{name}: {type(error).__name__}: {str(error)[:400]}\n{file.read_text()[:900]}"
            )
    assert refused > 2000
    assert ran > 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": ["jitter_s"]}, "metrics.0.flow: is missing, jitter_s requires a name"),
        (
            {"metrics": ["jain_index", {"name": "jitter_s", "flow": "y"}]},
            'metrics.1.flow: unknown flow "y" (known: x, bulk, bulk.0, bulk.1)',
        ),
        (
            {"metrics": [{"name": "jitter_s", "flow": []}]},
            "metrics.0.flow: [] is not a name",
        ),
        ({"metrics": [{"name": "afct_s", "group": 5}]}, "metrics.0.group: 5 is not a name"),
        (
            {"metrics": [{"name": "afct_s", "group": "blk"}]},
            'metrics.0.group: unknown group "blk", did you mean "bulk"?',
        ),
        ({"metrics": [{"name": "utilisation", "link": "dwn"}]}, 'did you mean "down"?'),
        ({"metrics": "jain_index"}, 'metrics: "jain_index" is not a list of names'),
        ({"metrics": ["trade_off"]}, "metrics.0: trade_off is not a single number"),
        ({"metrics": ["afct_improvement"]}, "metrics.0: afct_improvement compares two runs"),
        ({"metrics": ["jain_index", "jain_index"]}, "metrics.1: jain_index is given twice"),
        ({"skip": ["x"]}, 'skip.0: "x" is not a table of labels'),
        ({"skip": [{"x.count": True}]}, "skip.0.x.count: no value true on the axis"),
        ({"skip": [{"x.count": 1}, {"x.count": 2}]}, "skip: no point is left to run"),
        ({"together": [float("inf")]}, "together.0: inf is not a list of two axes or more"),
        ({"until": True, "seeds": 1}, "until: true is not a table"),
        ({"until": UNTIL}, "seeds: [1, 2] cannot be combined with until"),
        (
            {"seeds": 1, "until": {**UNTIL, "metrics": ["sojourn_p98_s"]}},
            'until.metrics.0: no column "sojourn_p98_s", did you mean "sojourn_p95_s"?',
        ),
        ({"axes": {"q": {"set": 5, "values": [1]}}}, "axes.q.set: 5 is not a path"),
        ({"axes": {"q": {"set": [True], "values": [1]}}}, "axes.q.set: [true] is not a path"),
        (
            {"axes": {"q": {"set": "up.delay", "from": 1, "to": 2, "points": 2,
                            "log": "uniform(1s, 2s)"}}},
            'axes.q.log: "uniform(1s, 2s)" is not true or false',
        ),
        (
            {"axes": {"a": {"set": "up.rate", "values": ["1mbit"]},
                      "b": {"set": "links.up.rate", "values": ["2mbit"]}}},
            "axes.b.set: links.up.rate is set twice, by axes.a too",
        ),
        ({"axes": {"seed": [1, 2]}}, "axes.seed: is the name of a column of results"),
        (
            {"axes": {"loss_rate": {"set": "up.loss", "values": [0.1, 0.2]}}},
            "axes.loss_rate: is the name of a column of results",
        ),
        ({"axes": {"x.count": [1, "1"]}}, "axes.x.count: two values have the same label"),
        ({"seeds": [2**53 + 1]}, f"seeds.0: {2**53 + 1} is not a seed, allowed: whole numbers"),
        ({"scenario": 5}, "scenario: 5 is not a scenario file, nor a table"),
        ({"scenario": {**SCENARIO, "duration": 3}}, "scenario.duration: 3 has no unit"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_place_and_what_is_allowed(
    change: dict[str, Any], message: str, file: Path
) -> None:
    """Faults found in a trial, and similar ones."""
    few = {"scenario": "base.json", "seeds": [1, 2], "axes": {"x.count": [1, 2]}}
    file.write_text(toml({**few, **change}))
    refused = refusal(file)
    assert refused is not None
    assert refused.startswith(f"{file}: "), refused
    assert message in refused


@pytest.mark.parametrize("needs", ["sample", "packet_log"])
def test_a_metric_that_needs_a_record_is_refused_without_it(needs: str) -> None:
    """`sample` or `packet_log`, at every point."""
    name = {"sample": "underflow_share", "packet_log": "loss_synchronisation"}[needs]
    without = {key: value for key, value in SCENARIO.items() if key != needs}
    with pytest.raises(sj.InputError) as refused:
        make_sweep(without, {"x.count": [1, 2]}, metrics=[name])
    message = f"metrics.0: {name} requires {needs} of the scenario, like {needs} = "
    assert message in str(refused.value)
    percentile = {"name": "queueing_delay_percentile_s", "percent": 99.9}
    if needs == "packet_log":
        with pytest.raises(sj.InputError, match="requires packet_log of the scenario"):
            make_sweep(without, {"x.count": [1, 2]}, metrics=[percentile])


def test_a_metric_of_a_flow_follows_it_into_a_group() -> None:
    """One flow gives its own value, several their mean."""
    metrics = [{"name": "jitter_s", "flow": name} for name in ("x", "x.2")]
    longer = {**SCENARIO, "duration": "500ms"}
    rows = sj.sweep(longer, {"x.count": [1, 3]}, metrics=metrics)
    x, bulk = SCENARIO["flows"]
    for row, count in zip(rows.iter_rows(named=True), (1, 3), strict=True):
        tree = {**longer, "flows": [{**x, "count": count}, bulk]}
        flows = sj.simulate(tree).flows
        each = [flow["jitter_s"] for flow in flows.values() if flow["group"] == "x"]
        assert row["jitter_s(flow=x)"] == pytest.approx(sum(each) / count)
        assert row["jitter_s(flow=x.2)"] == (each[2] if count == 3 else None)


def test_every_argument_of_every_metric_is_known() -> None:
    """Every argument is validated; docstrings state the required records."""
    for name, one in metrics.METRICS.items():
        parameters = list(inspect.signature(one.function).parameters)[1:]
        assert set(parameters) <= {*ARGUMENTS, "reference"}, name
        text = " ".join((one.function.__doc__ or "").split())
        assert ("Needs `sample`" in text) == (one.needs == "sample"), name
        assert ("Needs `packet_log`" in text) == (one.needs == "packet_log"), name


def test_the_order_of_axes_has_no_effect() -> None:
    """A parameter is set after its discipline, even if its axis comes first."""
    target = {"set": "up.qdisc.target", "values": ["1ms", "50ms"]}
    qdisc = {"set": "up.qdisc", "values": ["codel"]}
    for axes in ({"t": target, "q": qdisc}, {"q": qdisc, "t": target}):
        trees = [canonical(parsed) for _, parsed in make_sweep(SCENARIO, axes).points]
        assert [tree["links"]["up"]["qdisc"]["target"] for tree in trees] == ["1ms", "50ms"]


def test_an_axis_is_unset_where_the_one_it_depends_on_is() -> None:
    """In any order of the axes."""
    axes = {
        "interval": {"set": "up.qdisc.interval", "values": ["50ms"], "when": {"target": "1ms"}},
        "qdisc": {"set": "up.qdisc", "values": ["droptail", "codel"]},
        "target": {"set": "up.qdisc.target", "values": ["1ms"], "when": {"qdisc": "codel"}},
    }
    labels = [tuple(at.values()) for at, _ in make_sweep(SCENARIO, axes).points]
    assert labels == [("-", "droptail", "-"), ("50ms", "codel", "1ms")]


@pytest.mark.parametrize(
    "changes",
    [
        {"scenario": "a\tb\n.toml"},
        {"skip": [{"q": "red"}], "axes": {"q": {"set": "up.qdisc", "values": ["codel", "a\tb"]}}},
        {"skip": [{"p": "red"}], "axes": {"a\tb": {"set": "up.qdisc", "values": ["codel"]}}},
    ],
)
def test_words_of_a_sweep_file_are_printed_on_one_line(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """The name of its scenario, and labels and axes that a message lists."""
    path = tmp_path / "sweep.toml"
    path.write_text(toml({"scenario": SCENARIO, **changes}))
    with pytest.raises(sj.InputError) as refused:
        read_sweep(path)
    assert str(refused.value).isprintable()
