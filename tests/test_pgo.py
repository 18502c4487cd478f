"""The training of profile-guided wheels, and the report of what they gain: tools/pgo.py."""

import json

import pytest

import pgo
from sojourn import _sojourn
from sojourn.cli import new
from sojourn.scenario.draft import canonical


def test_the_training_has_every_discipline_and_congestion_control() -> None:
    """Code that the training does not call is compiled for size."""
    cases = [canonical(case) for case in pgo.every_part()]
    qdiscs = {link["qdisc"]["name"] for case in cases for link in case["links"].values()}
    tcps = {flow["tcp"]["name"] for case in cases for flow in case["flows"] if flow.get("tcp")}
    specs = json.loads(_sojourn.specs())
    assert qdiscs == {entry["name"] for entry in specs["disciplines"]}
    assert tcps == {entry["name"] for entry in specs["tcp"]}


def test_a_measurement_has_the_time_and_the_results() -> None:
    """The same case has the same results, in less time than the measurement takes."""
    case = pgo.templates()["uplink"]
    (seconds, result), (_, again) = pgo.measure(case), pgo.measure(case)
    assert 0 < seconds <= pgo.TURN
    assert result == again != pgo.measure(case | {"seed": 2})[1]


def test_the_report_has_ratios_and_refuses_different_results(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wheel that changes a result is an error."""
    plain = dict.fromkeys((*pgo.BENCHMARKS, *new.ORDER), (0.2, "same"))
    trained = dict.fromkeys(plain, (0.1, "same"))
    pgo.report(plain, trained)
    assert capsys.readouterr().out.count("0.50") == len(plain) + 2
    with pytest.raises(SystemExit, match="uplink: the wheels differ in their results"):
        pgo.report(plain, trained | {"uplink": (0.1, "other")})
