"""Results: numbers by name, columns with units, frames, files with their provenance."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from sojourn._util.plain import indented
from sojourn.metrics.overview import completion_times, groups
from sojourn.result.folders import FILES
from sojourn.result.result import Result
from sojourn.scenario.draft import Draft


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return a run of the small scenario with series and packet log."""
    from conftest import SMALL

    path = tmp_path_factory.mktemp("result") / "small.toml"
    path.write_text(SMALL)
    return sj.simulate(Draft.read(path).set(["sample=10ms", "packet_log=true"]), command=["test"])


LINK = """utilisation goodput_bps loss_rate mark_rate queue_mean_bytes queue_std_bytes
queue_mean_packets queue_std_packets sojourn_mean_s sojourn_std_s sojourn_p50_s sojourn_p95_s
sojourn_p99_s sojourn_max_s arrived_packets departed_packets dropped_packets marked_packets
arrived_bytes departed_bytes dropped_bytes dropped_full_packets dropped_early_packets
dropped_late_packets lost_on_wire_packets consecutive_loss qdisc""".split()

FLOW = """name group kind goodput_bps sent_packets retransmitted_packets timeouts completed
fct_mean_s fct_p50_s fct_p99_s rtt_s""".split()

CALL = """received_packets lost_packets loss_rate delay_mean_s delay_p50_s delay_p95_s delay_p99_s
delay_max_s jitter_s""".split()


def test_summary_has_every_documented_key(result: Result) -> None:
    """No documented key is missing."""
    assert next(iter(result.summary)) == "sojourn"
    assert set(result.summary) == {"sojourn", "scenario", "links", "flows"}
    assert set(result.links["up"]) == set(LINK)
    assert list(result.flows) == ["bulk.0", "bulk.1", "short", "call"]
    assert set(result.flows["short"]) == {*FLOW, "unfinished"}
    assert set(result.flows["call"]) == {*FLOW, *CALL}
    json.dumps(result.summary, allow_nan=False)


def test_numbers_are_items_and_attributes(result: Result) -> None:
    """Both forms give the same value."""
    up = result.links["up"]
    assert up.sojourn_p99_s == up["sojourn_p99_s"]
    assert 0 < up.utilisation <= 1
    with pytest.raises(AttributeError, match="no value 'sojurn_p99_s'"):
        _ = up.sojurn_p99_s


def test_series_agree_with_the_statistics(result: Result) -> None:
    """Departures in the intervals after the warm-up sum to the link's counter."""
    up = result.links["up"]
    after = result.time_s > 1.0
    assert len(result.time_s) == 300
    assert up.series.departed_bytes[after].sum() == pytest.approx(up.departed_bytes, abs=1500)
    # A look lasts no time: the mean of 200 looks is near the mean over time.
    mean = up.series.queue_bytes[after].mean()
    assert mean == pytest.approx(up.queue_mean_bytes, rel=0.15)
    for flow in result.flows.values():
        assert flow.series.delivered_bytes[after].sum() * 8 / 2 == pytest.approx(flow.goodput_bps)
    assert "cwnd_packets" not in result.flows["call"].series
    # All that the link sent reached a receiver, but for what is on the wire at the end.
    received = np.sum([group.series.received_bytes for group in result.groups.values()], axis=0)
    assert np.all(received <= 5e6 / 8 * 0.01 + 1500)
    assert received.sum() == pytest.approx(up.series.departed_bytes.sum(), rel=0.01)


def test_packet_log_agrees_with_the_statistics(result: Result) -> None:
    """Packets that arrived after the warm-up sum to the link's counters."""
    frame = result.frame("packet_log").filter(pl.col("arrived_s") >= 1.0)
    up = result.links["up"]
    # A packet that still waits at the end has no row: it has not left.
    assert up.arrived_packets - frame.height == up.series.queue_packets[-1]
    sent = frame.filter(pl.col("fate") == "sent")
    waited = (sent["left_s"] - sent["arrived_s"]).to_numpy()
    assert waited.mean() == pytest.approx(up.sojourn_mean_s, rel=0.02)
    assert waited.max() <= up.sojourn_max_s + 1e-9


def test_no_series_without_sample(small: Path) -> None:
    """The message says what is missing."""
    result = sj.simulate(small)
    with pytest.raises(AttributeError, match="no `sample`"):
        _ = result.links["up"].series.queue_bytes
    with pytest.raises(KeyError, match="no `packet_log`"):
        _ = result.links["up"].packet_log["arrived_s"]
    assert result.frame("series").is_empty()
    assert result.frame("packet_log").is_empty()


def test_frames(result: Result) -> None:
    """A row per flow, link, sample, packet, transfer."""
    assert result.frame()["name"].to_list() == list(result.flows)
    assert result.frame("links")["name"].to_list() == ["up"]
    series = result.frame("series")
    assert series.height == len(result.time_s) * (1 + len(result.flows))
    assert series.filter(name="up")["queue_bytes"].null_count() == 0
    assert series.filter(name="call")["queue_bytes"].null_count() == len(result.time_s)
    assert not series["sojourn_s"].is_nan().any()
    fct = result.frame("fct")
    assert fct["flow"].unique().to_list() == ["short"]
    assert (fct["bytes"] == 20_000).all()
    with pytest.raises(ValueError, match="no table 'nope'"):
        result.frame("nope")  # type: ignore[arg-type]


def test_completions_after_warmup_are_those_of_the_summary(result: Result) -> None:
    """Comparisons pool the same completions as the summary."""
    short = next(group for group in groups(result) if group.name == "short")
    took = completion_times(result, short)
    assert len(took) == result.flows["short"].completed >= 2
    assert took.mean() == pytest.approx(result.flows["short"].fct_mean_s)


def test_files_carry_their_provenance(result: Result, tmp_path: Path) -> None:
    """Each Parquet file has version and scenario; the scenario reproduces it."""
    out = tmp_path / "new" / "out"
    result.save(out)
    assert {p.name for p in out.iterdir()} == {*FILES} - {"queries.parquet"}
    assert json.loads((out / "summary.json").read_text()) == result.summary
    for path in out.glob("*.parquet"):
        metadata = pl.read_parquet_metadata(path)
        assert metadata["sojourn.version"] == sj.__version__
        assert metadata["sojourn.schema"] == "1"
        assert metadata["sojourn.seed"] == "1"
        assert json.loads(metadata["sojourn.command"]) == ["test"]
    again = sj.simulate(json.loads(metadata["sojourn.scenario"]))
    assert again.summary == result.summary
    assert pl.read_parquet(out / "flows.parquet").equals(result.frame())


def test_saving_replaces_all_files_of_an_earlier_run(
    result: Result, small: Path, tmp_path: Path
) -> None:
    """No packet log of another run remains; foreign files stay."""
    result.save(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    sj.simulate(small).save(tmp_path / "out")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    tables = {f"{name}.parquet" for name in ("flows", "groups", "links", "fct", "delays")}
    assert names == {"summary.json", "notes.txt", *tables}


def test_failed_saving_leaves_the_old_files(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete old result is better than half of a new one."""
    result.save(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(OSError, match="No space left on device"):
        result.save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_result_survives_pickling(result: Result) -> None:
    """Campaigns send results between processes."""
    back = pickle.loads(pickle.dumps(result))
    assert back.summary == result.summary
    assert np.array_equal(
        back.links["up"].series.queue_bytes, result.links["up"].series.queue_bytes
    )


def test_progress_is_told_and_can_stop(small: Path) -> None:
    """The share grows towards one; False ends the run."""
    long = Draft.read(small).set(["duration=2000s"]).tree
    shares: list[float] = []
    sj.simulate(long, progress=shares.append)
    assert shares
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1
    with pytest.raises(KeyboardInterrupt):
        sj.simulate(long, progress=lambda share: share < 0.5)


def test_many_runs_end_together_when_one_fails(small: Path) -> None:
    """All are checked before the first begins."""
    good = Draft.read(small).tree
    with pytest.raises(sj.InputError, match=r"^seed: "):
        sj.simulate_many([good, {**good, "seed": -1}])
    results = sj.simulate_many([{**good, "seed": seed} for seed in (5, 6, 7)], jobs=2)
    assert [r.scenario["seed"] for r in results] == [5, 6, 7]


def test_frames_of_different_runs_have_the_same_types() -> None:
    """A column without values is still numeric, and labels come first."""
    flow = sj.Flow(name="bulk", source=sj.Bulk(), path=["up"])
    case = sj.Scenario(duration="1s", links={"up": sj.Link(rate="1mbit")}, flows=[flow])
    frame = sj.simulate(case).frame("flows")
    assert frame.schema["fct_mean_s"] == pl.Float64
    assert frame.columns[:3] == ["name", "group", "kind"]


def test_indented_text_is_that_of_json() -> None:
    """As `json.dumps` writes it, which indents in Python and takes much longer."""
    value: dict[str, Any] = {
        "a": [],
        "b": {},
        "c": [{"d": 1e-7}, [1, -0.0, 1e22]],
        "e": 'é\u2028"\\\n',
        "f": None,
    }
    assert indented(value) == json.dumps(value, indent=2)
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented([float("nan")])


def test_groups_are_summaries_and_name_themselves(result: Result) -> None:
    """`flows` names the way to a group; tables have the group of each row."""
    with pytest.raises(KeyError, match=r"bulk is a group of 2 flows, bulk.0 to bulk.1: use result"):
        _ = result.flows["bulk"]
    with pytest.raises(KeyError, match=r"^'bulky'$"):
        _ = result.flows["bulky"]
    assert "bulk" not in result.flows
    groups = result.frame("groups")
    assert groups.columns[:3] == ["name", "flows", "goodput_bps"]
    assert groups.select("name", "flows").rows() == [("bulk", 2), ("short", 1), ("call", 1)]
    total = sum(result.flows[f"bulk.{n}"].goodput_bps for n in (0, 1))
    assert groups["goodput_bps"][0] == pytest.approx(total)
    assert not [name for name in result.groups["short"] if name.endswith("_values")]
    assert result.frame("group_series").height == 3 * len(result.time_s)
    transfers = result.frame("fct")
    assert transfers.columns[:2] == ["flow", "group"]
    assert set(transfers["group"].cast(str)) == {"short"}


def test_transfers_of_several_flows_have_their_group() -> None:
    """Percentiles by group need no names of flows."""
    flows = [
        sj.Flow(name=name, path=["up"], count=count, source=sj.Transfers(size="20kB"))
        for name, count in (("a", 2), ("b", 3))
    ]
    case = sj.Scenario(duration="2s", links={"up": sj.Link(rate="5mbit")}, flows=flows)
    frame = sj.simulate(case).frame("fct")
    of_flow = frame.select(pl.col("flow").cast(str).str.split(".").list.first()).to_series()
    assert of_flow.equals(frame["group"].cast(str), check_names=False)
    assert set(of_flow) == {"a", "b"}


def test_a_distribution_has_percentiles(result: Result) -> None:
    """By nearest rank, as in the packet log."""
    delays = result.distributions["sojourn/up"]
    log = result.links["up"].packet_log
    sent = log.fate == 0
    warm = log.arrived_s >= 1.0
    waits = np.sort((log.left_s - log.arrived_s)[sent & warm])
    for percent in (50, 95, 99, 100):
        exact = waits[max(0, int(np.ceil(percent / 100 * len(waits))) - 1)]
        assert delays.percentile(percent) == pytest.approx(exact, rel=0.02, abs=2e-6)
    with pytest.raises(sj.InputError, match="percent: 101 is out of range, allowed: 0 to 100"):
        delays.percentile(101)
    assert type(delays).of([]).percentile(50) is None
