"""DCTCP's figures in a quick form: few seeds, points and queries."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sojourn_lab.studies import dctcp, dctcp_incast, dctcp_pressure, dctcp_queues
from sojourn_lab.studies.dctcp_set_up import mean


@cache
def _ports() -> dict[tuple[int, str], dctcp_queues.Port]:
    return dctcp_queues.queues(2)


def test_figure_13_dctcp_keeps_the_queue_at_k() -> None:
    """The queue stays at about K + n packets, and TCP's is ten times as long."""
    for flows in (2, 20):
        ours, other = (_ports()[flows, label] for label in ("DCTCP", "TCP"))
        assert 15 < mean(ours.quantile(50)) < 20 + flows
        assert mean(ours.quantile(100)) < 20 + flows + 6
        assert mean(other.quantile(50)) > 10 * mean(ours.quantile(50))


def test_figure_1_both_use_the_link() -> None:
    """Both senders get 0.95 Gbit/s."""
    for flows in (2, 20):
        for label in ("DCTCP", "TCP"):
            assert mean(_ports()[flows, label].goodput) == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize(
    ("flows", "amplitude", "period"), [(2, (0.8, 1.1), (0.9, 1.25)), (10, (1.0, 1.2), (1.3, 2.0))]
)
def test_figure_12_the_sawtooth_follows_the_analysis(
    flows: int, amplitude: tuple[float, float], period: tuple[float, float]
) -> None:
    """The maximum is K + N; with few round-trip times in a period, the period is longer."""
    case = dctcp_queues.Case(flows)
    (runs,) = dctcp_queues.analysis(2, (case,)).values()
    assert abs(mean(one.highest for one in runs) - 40 - flows) < 4
    assert amplitude[0] < mean(one.amplitude for one in runs) / case.amplitude < amplitude[1]
    assert period[0] < mean(one.period for one in runs) / case.period < period[1]


@pytest.mark.parametrize("period_us", [300, 4000])
def test_the_period_of_a_known_wave_is_found(period_us: int) -> None:
    """A sawtooth with noise has its own period, not a multiple of it."""
    time = np.arange(0, 0.3, 1e-5)
    noise = np.random.default_rng(1).normal(0, 1, len(time))
    queue = 1500 * (50 + 20 * ((time * 1e6 / period_us) % 1) + noise)
    port = SimpleNamespace(series={"queue_bytes": queue})
    result: Any = SimpleNamespace(time_s=time, links={"port": port})
    case = dctcp_queues.Case(10)
    measures = dctcp_queues.oscillation(result, case)
    assert measures.period * case.round_trip_s == pytest.approx(period_us * 1e-6, rel=0.04)
    assert measures.amplitude == pytest.approx(0.95 * 20, abs=2)


def test_figure_12_a_long_period_is_as_predicted() -> None:
    """Ten flows whose windows are large have the period and the amplitude of the analysis."""
    case = dctcp_queues.Case(10, k=100, rtt_us=1000)
    (runs,) = dctcp_queues.analysis(2, (case,)).values()
    assert mean(one.period for one in runs) == pytest.approx(case.period, rel=0.15)
    assert mean(one.amplitude for one in runs) == pytest.approx(case.amplitude, rel=0.2)


def test_figure_18_dctcp_has_timeouts_where_windows_of_two_fill_the_buffer() -> None:
    """TCP has timeouts above 10 servers; DCTCP where two packets a server are the buffer."""
    tcp, ours = dctcp_incast.STATIC["TCP, 10 ms"], dctcp_incast.STATIC["DCTCP, 10 ms"]
    small = dctcp_incast.CAUSES["buffer of 60 packets"]
    measures = dctcp_incast.curves(
        {"tcp": tcp, "ours": ours, "small": small}, 2, (5, 20, 35, 60), 40
    )
    late = {
        label: [mean(one.timeouts) for one in curve.values()] for label, curve in measures.items()
    }
    assert late["tcp"][0] < 0.1 < 0.2 < late["tcp"][1] < late["tcp"][2]
    assert late["ours"][:3] == [0, 0, 0]
    assert late["small"][3] > 0.5
    assert 8 < mean(measures["ours"][35].mean_ms) < 9
    assert dctcp.joins(measures["tcp"]) in (5, 20)


def test_figures_19_and_20_dynamic_buffers_spare_dctcp() -> None:
    """DCTCP has no timeouts with 40 servers, nor if every host asks all others; TCP has."""
    (curve,) = dctcp_incast.curves(
        {"DCTCP": dctcp_incast.SHARED["DCTCP, 10 ms"]}, 2, (10, 40), 40
    ).values()
    assert [mean(one.timeouts) for one in curve.values()] == [0, 0]
    every = dctcp_incast.every_host(1, 10)
    assert mean(every["DCTCP, persistent connections"].timeouts) == 0
    assert mean(every["TCP, persistent connections"].timeouts) > 0.55


def test_figure_21_short_transfers_wait_for_the_queue_of_tcp() -> None:
    """20 kB take less than 1 ms next to long flows with DCTCP, and 19 ms with TCP."""
    measures = dctcp_pressure.build_up(2)
    assert mean(measures["DCTCP, persistent connection"].median_ms) < 1
    assert 15 < mean(measures["TCP, persistent connection"].median_ms) < 23


def test_table_2_long_flows_do_not_delay_queries_of_dctcp() -> None:
    """One short run with each sender: only TCP has timeouts."""
    chosen = {label: dctcp_pressure.SETTINGS[label] for label in ("DCTCP", "TCP, new connections")}
    measures = dctcp_pressure.pressure(1, chosen)
    assert measures["DCTCP"].timeouts == [0]
    assert measures["DCTCP"].late_ms[0] < 10
    assert measures["TCP, new connections"].timeouts[0] > 0.02


def test_a_verdict_that_the_text_does_not_have_stops_the_study(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`statements` compares each verdict with the one that the page is written for."""
    wrong = dctcp.Statement("figure 18: floor", "8 ms", "12 ms", agrees=False)
    monkeypatch.setattr(dctcp, "_long", lambda _: [wrong])
    for part in ("_waves", "_incast", "_pressure"):
        monkeypatch.setattr(dctcp, part, lambda _: [])
    with pytest.raises(SystemExit, match="figure 18: floor"):
        dctcp.statements(None)  # type: ignore[arg-type]
