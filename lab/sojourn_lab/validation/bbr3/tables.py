"""Scenarios of the two tables: random loss, and BBRv3 against one CUBIC flow by buffer size."""

from collections.abc import Iterator, Sequence
from typing import Any

from sojourn_lab.validation.random.draw import Scenario

LOSSES = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
LOSS_RATE_MBIT, LOSS_RTT_MS = 20, 100
LOSS_CONTROLS = ("bbr", "bbr3", "cubic")

PRODUCTS = (0.25, 0.5, 1, 2, 4, 8, 16)
"""Buffers in bandwidth-delay products."""
BUFFER_RATE_MBIT, BUFFER_RTT_MS = 40, 40

FRAME_BYTES = 1500


def _scenario(
    name: str, times: tuple[int, int], link: dict[str, Any], rtt_ms: int, tcps: Sequence[str]
) -> Scenario:
    """Return a scenario with a bulk flow of each control; `times` are duration and warm-up, s."""
    flows = [
        {
            "name": letter,
            "count": 1,
            "path": ["up"],
            "rtt": f"{rtt_ms}ms",
            "tcp": {"name": tcp},
            "source": {"name": "bulk", "start": f"{130 * i}ms"},
        }
        for i, (letter, tcp) in enumerate(zip("ab", tcps, strict=False))
    ]
    duration, warmup = times
    return {
        "name": name,
        "duration": f"{duration}s",
        "warmup": f"{warmup}s",
        "links": {"up": {**link, "delay": f"{rtt_ms / 2:g}ms"}},
        "flows": flows,
    }


def packets(rate_mbit: float, rtt_ms: float, products: float) -> int:
    """Return a buffer in packets."""
    return max(2, round(rate_mbit * 1e3 * rtt_ms / 8 / FRAME_BYTES * products))


def loss(control: str, share: float) -> Scenario:
    """Return one flow over a lossy path with a buffer of two bandwidth-delay products."""
    limit = packets(LOSS_RATE_MBIT, LOSS_RTT_MS, 2)
    link = {
        "rate": f"{LOSS_RATE_MBIT}mbit",
        "qdisc": {"name": "droptail", "limit": f"{limit}p"},
        **({"loss": share} if share else {}),
    }
    return _scenario(f"loss-{control}-{share:g}", (32, 8), link, LOSS_RTT_MS, [control])


def buffer(products: float) -> Scenario:
    """Return a BBRv3 flow (group a) with a CUBIC flow, and a buffer."""
    limit = packets(BUFFER_RATE_MBIT, BUFFER_RTT_MS, products)
    link = {
        "rate": f"{BUFFER_RATE_MBIT}mbit",
        "qdisc": {"name": "droptail", "limit": f"{limit}p"},
    }
    return _scenario(f"buffer-{products:g}", (60, 20), link, BUFFER_RTT_MS, ["bbr3", "cubic"])


def scenarios() -> Iterator[Scenario]:
    """Iterate over the scenarios of both tables."""
    for control in LOSS_CONTROLS:
        for share in LOSSES:
            yield loss(control, share)
    for products in PRODUCTS:
        yield buffer(products)
