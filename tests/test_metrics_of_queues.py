"""Delays of the packets of a group, and the distribution of a queue, against the packet log."""

from typing import Any

import numpy as np
import pytest

import sojourn as sj
from sojourn import metrics


def both_ways() -> dict[str, Any]:
    """Return a bulk transfer and a voice call over one link, and a link for acknowledgements."""
    link = {"rate": "100mbit", "delay": "10us"}
    flow = {"path": ["there"], "return_path": ["back"]}
    return {
        "duration": "1s", "warmup": "500ms", "sample": "1ms", "packet_log": True,
        "links": {"there": link, "back": link},
        "flows": [{"name": "one", **flow}, {"name": "voice", "path": ["there"], "source": "cbr"}],
    }  # fmt: skip


def test_delays_of_groups_and_queue_lengths() -> None:
    """The packets of all groups together are the packets of the link; samples follow the queue."""
    result = sj.simulate(both_ways())
    groups = [metrics.group_queueing_delays_s(result, "there", name) for name in ("one", "voice")]
    log = result.links["there"].packet_log
    sent = (log["fate"] == 0) & (log["left_s"] >= 0.5)
    waited = np.sort((log["left_s"] - log["arrived_s"])[sent])
    assert np.array_equal(np.sort(np.concatenate(groups)), waited)
    assert 0 < len(groups[1]) < len(groups[0])
    acks = metrics.group_queueing_delays_s(result, "back", "one")
    assert len(acks) > 1000
    lengths = metrics.queue_lengths_bytes(result, "there")
    assert len(lengths) == 500
    assert lengths.mean() == pytest.approx(result.links["there"]["queue_mean_bytes"], rel=0.02)
    with pytest.raises(KeyError):
        metrics.group_queueing_delays_s(result, "there", "nobody")
