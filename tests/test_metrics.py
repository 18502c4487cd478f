"""Every metric on columns made by hand, against values computed by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from hand_made import FLOWS, result_with
from sojourn import metrics
from sojourn.metrics import METRICS
from sojourn.metrics.registry import Metric, metric
from sojourn.result.result import Array, Result


def test_throughput_and_shares() -> None:
    """50 MB in 100 s; 3 + 1 + 0.5 + 0.5 Mbit/s."""
    r = result_with()
    assert metrics.throughput_bps(r, "l") == 4e6
    assert metrics.utilisation(r, "l") == 0.75
    assert metrics.goodput_bps(r) == 5e6
    assert metrics.goodput_bps(r, "ftp") == 4e6
    assert metrics.tcp_goodput_bps(r) == 4.5e6
    assert metrics.tcp_goodput_bps(r, "ftp", wire=True) == pytest.approx(4e6 * 1.04)
    assert metrics.tcp_goodput_bps(r, "call") == 0
    assert metrics.goodput_share(r, "ftp") == 0.8
    assert metrics.min_max_ratio(r, "ftp") == pytest.approx(1 / 3)
    for rate, expected in ((0.25, (0.25, 1)), (0, (None, None))):
        for flow in r.flows.values():
            flow["goodput_bps"] = rate
        assert (metrics.goodput_share(r, "web"), metrics.min_max_ratio(r)) == expected
    r.flows.clear()
    assert metrics.min_max_ratio(r) is None
    with pytest.raises(KeyError, match="no group of flows 'fpt'"):
        metrics.goodput_bps(r, "fpt")


def test_jain_index() -> None:
    """25 over 4 (9 + 1 + 0.25 + 0.25).

    One of three 10 % low: 8.41 / 8.43 = 0.9976 (the reference says 0.9977).
    """
    r = result_with()
    assert metrics.jain_index(r) == pytest.approx(25 / 42)
    assert metrics.jain_index(r, ["web", "call"]) == pytest.approx(1)
    assert metrics.jain_index(r, ["ftp", "web"], [8, 1]) == pytest.approx(1)
    assert metrics.jain_index(r, ["ftp", "web"], [1, 1]) == pytest.approx(4.5**2 / (2 * 16.25))
    x = np.array([1, 1, 0.9])
    for flow, goodput in zip(FLOWS[:3], x, strict=True):
        r.flows[str(flow["name"])]["goodput_bps"] = goodput
    del r.flows["call"]
    assert metrics.jain_index(r) == pytest.approx(8.41 / 8.43)
    for flow in r.flows.values():
        flow["goodput_bps"] = 0
    assert metrics.jain_index(r) == 1


def media(**first: Any) -> Result:
    """Return the result of two videos and two calls; `first` changes the first of each."""
    flow = {"path": ["l"], "count": 2}
    flows = [
        {**flow, "name": "film", "rtt": "50ms", "source": "video"},
        {**flow, "name": "call", "source": "call"},
    ]
    video = {"video_rate_bps": 2e6, "video_stalls": 1, "video_stalled_s": 2.5,
             "video_switches": 3, "video_startup_s": 0.5, "video_segments": 4,
             "goodput_bps": 2e6, "kind": "tcp"}  # fmt: skip
    call = {"frames": 900, "lost_frames": 9, "frame_delay_p50_s": 0.02, "frame_delay_p95_s": 0.05,
            "frame_delay_p99_s": 0.06, "frame_delay_max_s": 0.07, "goodput_bps": 1e6,
            "kind": "udp"}  # fmt: skip
    rows = []
    for group, values in (("film", video), ("call", call)):
        for i in (0, 1):
            changed = {key: value for key, value in first.items() if i == 0 and key in values}
            rows.append({"name": f"{group}.{i}", "group": group, **values, **changed})
    result = result_with(change={"flows": flows})
    result.flows.clear()
    result.flows.update({row["name"]: row for row in rows})
    return result


def test_video_and_calls() -> None:
    """Two of each: rates and starts are means, stalls are sums, delays of the worst call."""
    r = media(video_rate_bps=4e6, video_stalls=0, video_stalled_s=0.0, frame_delay_p95_s=0.04,
              lost_frames=0, goodput_bps=3e6)  # fmt: skip
    assert metrics.video_rate_bps(r) == metrics.video_rate_bps(r, "film") == 3e6
    assert metrics.video_rate_bps(r, "call") is None
    assert metrics.video_stalls(r, "film") == 1
    assert metrics.video_stalled_s(r) == 2.5
    assert metrics.video_switches(r) == 6
    assert metrics.video_startup_s(r) == 0.5
    assert metrics.call_rate_bps(r) == 2e6
    assert metrics.call_rate_bps(r, "film") is None
    assert metrics.frame_delay_percentile_s(r) == 0.05
    assert metrics.frame_delay_percentile_s(r, 100, "call") == 0.07
    assert metrics.frame_delay_percentile_s(r, 99) == 0.06
    assert metrics.frame_delay_percentile_s(r, 50, "film") is None
    assert metrics.lost_frames(r) == 9 / 1800
    assert metrics.lost_frames(r, "film") is None
    with pytest.raises(ValueError, match="percent is 90, allowed: 50, 95, 99 and 100"):
        metrics.frame_delay_percentile_s(r, 90)
    late = media(video_rate_bps=None, video_startup_s=None)
    assert metrics.video_rate_bps(late) == 2e6
    assert metrics.video_startup_s(late) == 0.5
    none = media(video_rate_bps=None)
    none.flows["film.1"]["video_rate_bps"] = None
    assert metrics.video_rate_bps(none) is None
    assert metrics.video_startup_s(none, "call") is None


def there(column: Array | None) -> Array:
    """Return a column that must exist."""
    assert column is not None
    return column


def test_losses() -> None:
    """300 in 100 s; 5 of 100 datagrams; ten runs of losses: 6 of 1, 2 of 2, 2 of 4."""
    r = result_with()
    assert metrics.loss_rate(r, "l") == 0.02
    assert metrics.mark_rate(r, "l") == 0.01
    assert metrics.drop_rate_pps(r, "l") == 3
    assert metrics.udp_loss(r) == 0.05
    assert metrics.udp_loss(r, "ftp") is None
    assert np.allclose(there(metrics.consecutive_loss(r, "l")), [0.6, 0.2, 0, 0.2])
    assert np.allclose(there(metrics.consecutive_loss_ccdf(r, "l")), [1, 0.4, 0.2, 0.2])
    assert metrics.consecutive_loss_mean(r, "l") == pytest.approx(1.8)
    r.links["l"]["consecutive_loss"] = []
    assert metrics.consecutive_loss(r, "l") is None
    assert metrics.consecutive_loss_ccdf(r, "l") is None
    assert metrics.consecutive_loss_mean(r, "l") is None
    r.links["l"]["consecutive_loss"] = [0, 1]
    assert there(metrics.consecutive_loss(r, "l")).tolist() == [0, 1], "one run of two"


def test_independent_losses_come_in_geometric_runs() -> None:
    """P(N = n) = (1 - p) p^(n - 1), mean 1/(1 - p), for p = 0.3."""
    rng = np.random.default_rng(1)
    lost = rng.random(400_000) < 0.3
    edges = np.flatnonzero(np.diff(np.concatenate(([0], lost, [0]))))
    runs = np.bincount(edges[1::2] - edges[::2])[1:]
    r = result_with()
    r.links["l"]["consecutive_loss"] = runs.tolist()
    chances = metrics.consecutive_loss(r, "l")
    assert chances is not None
    assert np.allclose(chances[:4], 0.7 * 0.3 ** np.arange(4), atol=0.005)
    assert metrics.consecutive_loss_mean(r, "l") == pytest.approx(1 / 0.7, rel=0.01)


def test_drops_over_time() -> None:
    """Cumulative sums by cause; `aqm` is early plus late drops."""
    by = {"full": [0, 1, 0, 2], "early": [1, 0, 0, 1], "late": [0, 0, 3, 0]}
    r = result_with({f"links/l/dropped_{why}_packets": n for why, n in by.items()})
    drops = {name: column.tolist() for name, column in metrics.drops_over_time(r, "l").items()}
    assert drops == {"overflow": [0, 1, 1, 3], "aqm": [1, 1, 4, 5], "early": [1, 1, 1, 2],
                    "late": [0, 0, 3, 3]}  # fmt: skip


def packet_log(rows: Sequence[tuple[float, float, int, int]]) -> dict[str, Any]:
    """Return a packet log from rows (arrived, left, flow, fate)."""
    names = ("arrived_s", "left_s", "flow", "fate")
    return {
        f"packet_log/l/{n}": np.array(c)
        for n, c in zip(names, zip(*rows, strict=True), strict=True)
    }


def test_loss_intervals_and_synchronisation() -> None:
    """Loss runs start at 3, 6 and 9 s, two and one accepted packets between; ftp.1 has no loss."""
    arrivals = [(1, 0, 0), (2, 1, 0), (3, 0, 1), (3.05, 2, 2), (4, 0, 0), (5, 1, 0), (6, 2, 1),
                (7, 0, 0), (9, 0, 1)]  # fmt: skip
    r = result_with(packet_log([(t, t, flow, fate) for t, flow, fate in arrivals]))
    intervals = metrics.loss_interval_packets(r, "l")
    assert intervals is not None
    assert intervals.tolist() == [2, 1]
    # Events: {0, 2}, {2}, {0} of three flows; within 10 ms the first falls apart into two.
    assert metrics.loss_synchronisation(r, "l", 0.1) == pytest.approx((2 + 1 + 1) / 9)
    assert metrics.loss_synchronisation(r, "l", 0.01) == pytest.approx((1 + 1 + 1 + 1) / 12)
    assert metrics.loss_synchronisation(r, "l") == pytest.approx(4 / 9), "0.1 s is their RTT"
    # A loss at the end of the window is of the event: 0.5 s after the first one, not later.
    edge = result_with(packet_log([(1.0, 1.0, 0, 1), (1.5, 1.5, 1, 1), (3.0, 3.0, 2, 1)]))
    assert metrics.loss_synchronisation(edge, "l", 0.5) == pytest.approx((2 + 1) / 6)
    two = result_with(
        packet_log([(1.0, 1.0, 0, 1), (2.0, 2.0, 1, 0), (3.0, 3.0, 1, 0), (4.0, 4.0, 0, 1)])
    )
    assert metrics.loss_synchronisation(two, "l") == pytest.approx((1 + 1) / 4)
    assert there(metrics.loss_interval_packets(two, "l")).tolist() == [2]
    none = result_with(packet_log([(1.0, 1.0, 0, 0), (2.0, 2.0, 1, 0)]))
    assert metrics.loss_synchronisation(none, "l") is None
    alone = result_with(packet_log([(1.0, 1.0, 0, 1), (2.0, 2.0, 0, 0)]))
    assert metrics.loss_synchronisation(alone, "l") is None
    assert metrics.loss_interval_packets(alone, "l") is None


def test_late_losses_come_in_the_order_of_departures() -> None:
    """A packet of 1 s that is dropped at the head at 5 s is lost after one of 3 s."""
    rows = [(2.0, 2.5, 0, 0), (3.0, 3.0, 1, 1), (4.0, 4.5, 0, 0), (1.0, 5.0, 0, 3)]
    intervals = metrics.loss_interval_packets(result_with(packet_log(rows)), "l")
    assert intervals is not None
    assert intervals.tolist() == [1]


def test_delays_and_queues() -> None:
    """From the summary, or from the packet log after the warm-up of 10 s."""
    rows = [(9.0, 9.9, 0, 0), (20.0, 20.01, 0, 0), (21.0, 21.04, 1, 0), (22.0, 22.02, 0, 0),
            (23.0, 29.0, 0, 3)]  # fmt: skip
    r = result_with(packet_log(rows))
    assert metrics.queueing_delay_mean_s(r, "l") == 0.02
    assert metrics.queueing_delay_std_s(r, "l") == 0.005
    assert metrics.queueing_delay_percentile_s(r, "l") == 0.04
    for percent, delay in ((50, 0.018), (95, 0.03), (100, 0.05)):
        assert metrics.queueing_delay_percentile_s(r, "l", percent) == delay
    assert metrics.queueing_delay_percentile_s(r, "l", 67) == pytest.approx(0.04)
    assert metrics.queueing_delay_percentile_s(r, "l", 66) == pytest.approx(0.02)
    assert metrics.queueing_delay_range_s(r, "l") == pytest.approx((0.01, 0.04))
    assert metrics.queueing_delay_range_s(result_with(packet_log(rows[:1])), "l") is None
    assert metrics.queue_mean_normalised(r, "l") == 0.4
    assert metrics.queue_std_normalised(r, "l") == 0.1
    assert metrics.jitter_s(r, "call") == 0.003
    assert metrics.jitter_s(r, "web") is None
    assert metrics.trade_off(r, "l") == (0.02, 3e6)


def test_utilisation_over_time() -> None:
    """The column of the link's series."""
    columns = {"series/time_s": [1.0, 2, 3], "links/l/utilisation": [1.0, 0.25, np.nan]}
    utilisation = metrics.utilisation_over_time(result_with(columns), "l")
    assert utilisation.tolist() == pytest.approx([1, 0.25, np.nan], nan_ok=True)


def queue(values: np.ndarray[Any, Any], step: float = 0.01) -> Result:
    """Return a Result with these samples of the queue."""
    time = step * np.arange(1, len(values) + 1)
    packets = (values > 0).astype(np.uint64)
    return result_with({"series/time_s": time, "links/l/queue_bytes": values,
                 "links/l/queue_packets": packets})  # fmt: skip


def steady(response: tuple[float, bool]) -> float:
    """Return the time of a response that settled."""
    assert response[1]
    return response[0]


def test_response_time() -> None:
    """A square wave of deviation 1 kB; for 3.3 s after the step at 60 s one of 2 kB.

    A window of 5 s that begins tau after the step holds 3.3 - tau seconds of variance 4 and else 1:
    below (1.5 kB)^2 when (3.3 - tau) * 3 / 5 + 1 < 2.25, tau > 1.2166: 1.3 s.
    """
    wave = np.where(np.arange(11_000) % 2 == 0, 1.0, -1.0)
    size = np.full(11_000, 1000.0)
    size[6000:6330] = 2000.0
    r = queue(20_000 + wave * size)
    assert steady(metrics.response_time_s(r, "l", 60.0)) == pytest.approx(1.3)
    assert steady(metrics.response_time_s(r, "l", 60.0, until_s=90.0)) == pytest.approx(1.3)
    # With windows of 1 s the wave must be over but for 0.41 s of it: 2.9 s.
    response = metrics.response_time_s(r, "l", 60.0, window_s=1.0)
    assert steady(response) == pytest.approx(2.9)
    # Deviations that never come down: the length of the run, and False.
    size[6000:8500] = 2000.0
    size[3500:6000] = 100.0
    response = metrics.response_time_s(queue(20_000 + wave * size), "l", 60.0, until_s=70.0,
                                   before_s=20.0, after_s=-10.0)  # fmt: skip
    assert response == pytest.approx((10.0, 0))


def test_samples_of_a_response() -> None:
    """A window holds the samples after its start and at its end; the deviation before is 1.

    Of 0 3 0 3 4 2 from 5 s on, windows of 4 s have the variances 2.25, 2.25 and, after 2 s, 2.1875.
    The first two are not below 1.5^2. Bytes in a quarter of the unit change nothing.
    """
    of = {"window_s": 4.0, "before_s": 4.0, "after_s": 1.0}
    for unit in (1, 0.25):
        r = queue(unit * np.array([0, 2, 0, 2, 0, 3, 0, 3, 4, 2.0]), 1.0)
        assert steady(metrics.response_time_s(r, "l", 4.0, **of)) == 2.0, "the last window"
        assert metrics.response_time_s(r, "l", 4.0, until_s=9.9, **of) == pytest.approx((5.9, 0))
    # Peaks just before the 50 s and 25 s of the reference, and at the end of the first window.
    values = 20_000 + np.where(np.arange(110) % 2 == 0, 1000.0, -1000.0)
    values[85:] = 20_000.0
    values[[9, 64, 84]] = 1e6, 1e5, 1e6
    r = queue(values, 1.0)
    assert steady(metrics.response_time_s(r, "l", 60.0)) == 5.0
    assert steady(metrics.response_time_s(r, "l", 60.0, window_s=0.5)) == 0.5, "a first sample"


def test_settling_and_underflow() -> None:
    """The queue goes from 10 to 30 kB as a ramp of 4 s; a tenth of 50 kB is 5 kB.

    The mean over a second from tau on is 10 + 5 (tau + 0.5) on the ramp: above 25 when tau > 2.5.
    """
    values = np.full(11_000, 30_000.0)
    values[:6000] = 10_000.0
    values[6000:6400] = 10_000.0 + 50.0 * np.arange(400)
    r = queue(values)
    assert steady(metrics.settling_time_s(r, "l", 60.0)) == pytest.approx(2.6)
    values[:50] = 0
    r = queue(values)
    assert metrics.underflow_share(r, "l") == pytest.approx(50 / 11_000)
    assert metrics.underflow_share(r, "l", 1.0) == 0
    assert metrics.underflow_share(r, "l", float(r.time_s[49])) == 0, "after, not from"
    assert metrics.underflow_share(r, "l", 1e9) is None


def test_samples_of_settling() -> None:
    """Means of one sample each; a distance of 5 kB is not within a tenth of 50 kB."""
    values = np.full(40, 20.0)
    values[[3, 14]] = 30, 1e6
    six = [40, 40, 40, 10, 20, 15]
    cases: list[tuple[Any, float, float, dict[str, float], tuple[float, bool]]] = [
        (values, 1, 3, {}, (1, True)),  # a peak before the last 25 s
        ([25, 15, 20, 20], 1, 0, {"after_s": 4}, (2, True)),  # near the mean of all
        (six, 1, 2, {"until_s": 5.9, "after_s": 2}, (3.9, False)),  # 10 and 20 around their mean
        (six, 1, 2, {"after_s": 1}, (3, True)),  # at the last sample
        (six, 2, 6, {"after_s": 1}, (5, True)),  # windows without a sample say nothing
    ]
    for kilobytes, step, at_s, options, expected in cases:
        r = queue(1e3 * np.array(kilobytes), step)
        assert metrics.settling_time_s(r, "l", at_s, **options) == pytest.approx(expected)


def test_a_buffer_without_a_fixed_size_has_no_share() -> None:
    """The buffer of cake follows the rate of its shaper."""
    flow = {"name": "a", "path": ["up"], "rtt": "20ms"}
    links = {"up": {"rate": "5mbit", "qdisc": "cake"}}
    result = sj.simulate({"duration": "2s", "sample": "100ms", "links": links, "flows": [flow]})
    assert metrics.queue_mean_normalised(result, "up") is None
    assert metrics.queue_std_normalised(result, "up") is None
    with pytest.raises(sj.InputError, match=r"links\.up\.qdisc\.limit: is auto"):
        metrics.settling_time_s(result, "up", 1.0)


def test_every_metric_is_tested_and_documented() -> None:
    """Each has a unit, a source, a sentence, and its name in a test."""
    here = Path(__file__).parent
    text = "".join(path.read_text() for path in here.glob("test_metrics*.py"))
    for name, one in METRICS.items():
        assert all((one.unit, one.source, one.about.endswith("."))), name
        assert f"metrics.{name}(" in text, f"{name} has no test"
        assert getattr(metrics, name) is one.function
    assert len(METRICS) > 30


def test_registration() -> None:
    """A metric is about the first paragraph of the docstring, on one line."""

    def made_up() -> None: ...

    made_up.__doc__ = "Numbers\n    made up.\n\n    More words.\n"
    assert metric("things", "a book", needs="sample")(made_up) is made_up
    one = METRICS.pop("made_up")
    assert one == Metric("made_up", "things", "a book", "Numbers made up.", made_up, "sample")
