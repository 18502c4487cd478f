"""Goodput is never above the rate of the link, on random paths with every control."""

import warnings

import pytest

import sojourn as sj
from sojourn._util.units import bps_of
from sojourn_lab.validation.random.draw import CONTROLS, draw, named

BY_LOSS = ("dctcp", "prague", "htcp", "illinois", "hybla", "scalable")
"""Controls in place of `cubic` and `reno`, in every second scenario."""


@pytest.mark.parametrize("number", range(40))
def test_goodput_without_warmup_is_at_most_the_rate(number: int) -> None:
    """Payload is less than what the link carries, whatever is lost and sent again."""
    other = BY_LOSS[number // 2 % len(BY_LOSS)]
    others = {"cubic": other, "reno": other, "bbr": "bbr3"}
    family = others if number % 2 else {c: c for c in CONTROLS}
    scenario = named(draw("goodput", number), family)
    scenario |= {"duration": "6s", "warmup": "0s", "seed": number}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flows = sj.simulate(scenario).summary["flows"]
    total = sum(flow["goodput_bps"] for flow in flows)
    assert 0 < total <= bps_of(scenario["links"]["up"]["rate"])
