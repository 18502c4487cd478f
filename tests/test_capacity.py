"""`sojourn capacity`: the search, a full sweep for comparison, needs, stores, bad input."""

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.cli.main import main
from sojourn.result.estimate import Estimate
from sojourn.scenario.draft import canonical
from sojourn.sweeps.bisection import Find, Limits, Verdict, search
from sojourn.sweeps.capacity_plan import make_plan
from sojourn.sweeps.grid import Grid, kind_of
from sojourn.sweeps.needs import read_needs

CASE: dict[str, Any] = {
    "name": "office",
    "duration": "10s",
    "warmup": "2s",
    "links": {"up": {"rate": "10mbit", "delay": "10ms", "qdisc": "fq_codel"}},
    "flows": [
        {
            "name": "upload",
            "count": 5,
            "path": ["up"],
            "rtt": "40ms",
            "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
        },
        {
            "name": "call",
            "path": ["up"],
            "source": {"name": "cbr", "rate": "64kbit", "packet": "160B"},
        },
    ],
}
NEED = "call.delay_p99 < 30ms"


def searched(
    verdicts: dict[int, Verdict], start: int, guess: Find, *, is_stated: bool = True
) -> tuple[Limits, int]:
    """Return the limits that a search finds among known verdicts, and its number of steps."""
    places = sorted(verdicts)
    one = search(Grid("count", 2), places[0], places[-1], start, guess, is_stated=is_stated)
    place, steps = next(one), 1
    while True:
        try:
            place = one.send(verdicts[place])
        except StopIteration as end:
            limits: Limits = end.value
            return limits, steps
        steps += 1


def verdict(place: int, sure: int, met: int, possible: int) -> Verdict:
    """Return the verdict on a place where the limits of the largest place are given."""
    return Verdict(place <= met, place <= sure, place > possible)


def test_a_search_finds_all_three_limits() -> None:
    """Random limits, ranges and starts, in both directions, as a look at every place finds."""
    rng = random.Random(1)
    for _ in range(300):
        last = rng.randint(2, 400)
        sure, met, possible = sorted(rng.randint(0, last) for _ in range(3))
        mirrored = rng.random() < 0.5
        known = {
            (last + 1 - n if mirrored else n): verdict(n, sure, met, possible)
            for n in range(1, last + 1)
        }
        find = Find.SMALLEST if mirrored else Find.LARGEST
        limits, steps = searched(known, rng.randint(1, last), find)
        ends: list[int | None] = [
            None if not n else last + 1 - n if mirrored else n for n in (met, sure, possible)
        ]
        assert limits.value == ends[0]
        assert (limits.beyond is None) == (met == last)
        if met and (sure or possible < last):
            assert (limits.sure, limits.possible) == (ends[1], ends[2])
        assert steps <= 45
        assert limits.odd is None


@pytest.mark.parametrize("guess", list(Find))
def test_a_search_finds_the_direction(guess: Find) -> None:
    """A direction that is only a guess is replaced if the limit is on the other side."""
    rising = {n: verdict(n, 12, 12, 12) for n in range(1, 40)}
    falling = {40 - n: one for n, one in rising.items()}
    for start in (3, 20, 35):
        limits, _ = searched(rising, start, guess, is_stated=False)
        assert (limits.find, limits.value) == (Find.LARGEST, 12)
        limits, _ = searched(falling, start, guess, is_stated=False)
        assert (limits.find, limits.value) == (Find.SMALLEST, 28)


def test_a_requirement_that_is_met_twice_is_noticed() -> None:
    """A value beyond the limit that meets the need for certain is reported, noise is not."""
    known = {n: verdict(n, 12, 12, 12) for n in range(1, 100)}
    for n in range(26, 60):
        known[n] = Verdict(True, True, False)
    limits, _ = searched(known, 2, Find.LARGEST)
    assert limits.value == 12
    assert limits.odd is not None
    met, failed = limits.odd
    assert 26 <= met < 60
    assert 12 < failed < 26
    noisy = known | {n: Verdict(True, False, False) for n in range(26, 60)}
    limits, _ = searched(noisy, 2, Find.LARGEST)
    assert limits.odd is None


def test_the_grid_has_round_values() -> None:
    """Each place has its own number, ascending; a number is at its place."""
    for digits in (1, 2, 3):
        grid = Grid("rate", digits)
        numbers = [grid.number(place) for place in range(400)]
        assert numbers == sorted(set(numbers))
        assert [grid.place(number) for number in numbers] == list(range(400))
        assert all(len(str(number).rstrip("0")) <= digits for number in numbers)
    rate = Grid("rate", 2)
    assert [rate.text(rate.place(n)) for n in (990, 10_000, 1_550_000, 25e9)] == [
        "990bit", "10kbit", "1.5mbit", "25gbit",
    ]  # fmt: skip
    for text in ("7", "30ms", "300kB", "1.5mbit", "40p"):
        value: Any = 7 if text == "7" else text
        kind, number = kind_of(value)
        grid = Grid(kind, 2)
        assert grid.value(grid.place(number)) == value


def swept(key: str, values: list[Any], needs: list[str], qdisc: str) -> dict[Any, bool]:
    """Return whether each value meets the needs, by a full sweep."""
    case = CASE | {"links": {"up": CASE["links"]["up"] | {"qdisc": qdisc}}}
    rows = sj.sweep(case, {key: values}, seeds=3)
    read, _ = read_needs(needs, canonical(case), None)
    return {
        value: all(
            need.verdict(need.estimate(rows.filter(pl.col(key) == value))).is_met for need in read
        )
        for value in values
    }


def test_the_answer_is_that_of_a_full_sweep_in_a_quarter_of_its_runs() -> None:
    """The largest number of uploads, for two disciplines, of 80 values with 3 seeds."""
    answers = sj.capacity(
        CASE, "upload.count", NEED, qdiscs="fq_codel,codel", between=(1, 80), seeds=3
    )
    for answer in answers.answers:
        met = swept("upload.count", list(range(1, 81)), [NEED], str(answer.qdisc))
        assert answer.find == "largest"
        assert met[answer.value]
        assert not met[int(str(answer.value)) + 1]
        first_failure = min(value for value, good in met.items() if not good)
        assert answer.low is not None
        assert answer.high is not None
        assert int(str(answer.low)) <= first_failure <= int(str(answer.high)) + 1
    assert answers.runs <= 2 * 80 * 3 / 4
    assert str(answers).startswith("fq_codel ")


def test_the_smallest_link_is_found() -> None:
    """A need that is met from above: the direction is found, and the next value fails."""
    result = sj.capacity(CASE, "up.rate", NEED, seeds=3)
    answer = result.answers[0]
    assert answer.find == "smallest"
    assert answer.following is not None
    assert answer.limited_by == [NEED]
    values = [probe.value for probe in answer.probes]
    assert answer.value is not None
    place = values.index(answer.value)
    assert answer.probes[place - 1].value == answer.following.value
    assert answer.probes[place].verdict.is_met
    assert not answer.probes[place - 1].verdict.is_met


def test_several_needs_are_met_together() -> None:
    """The buffer is limited from above by one need; the other one is met there."""
    case = CASE | {"links": {"up": CASE["links"]["up"] | {"qdisc": "droptail"}}}
    needs = ["call.delay_p99 < 50ms", "utilisation > 95%"]
    result = sj.capacity(case, "up.qdisc.limit", needs, between=("4kB", "400kB"), seeds=3)
    answer = result.answers[0]
    assert answer.find == "largest"
    assert answer.limited_by == [needs[0]]
    assert answer.at is not None
    delay, use = answer.at.estimates
    assert delay.value is not None
    assert use.value is not None
    assert delay.value <= 0.05
    assert use.value >= 0.95
    assert str(answer.value).endswith("kB")


def test_a_second_key_gives_a_frontier(tmp_path: Path) -> None:
    """There is an answer for each value; more uploads need a faster link."""
    over = ("upload.count", [2, 16])
    result = sj.capacity(CASE, "up.rate", NEED, qdiscs=["fq_codel"], over=over, seeds=3)
    assert [one.over for one in result.answers] == ["upload.count=2", "upload.count=16"]
    rates = [kind_of(one.value)[1] for one in result.answers]
    assert rates[0] < rates[1]
    sj.draw_capacity(result, tmp_path / "frontier.svg")
    assert (tmp_path / "frontier.svg").exists()


def test_the_ends_of_the_range_are_said() -> None:
    """Every value meets a need, or none does."""
    short: dict[str, Any] = {"between": (1, 3), "seeds": 1}
    every = sj.capacity(CASE, "upload.count", "call.loss_rate < 50%", **short)
    assert str(every) == ">= 3"
    assert not every.answers[0].is_bounded
    none = sj.capacity(CASE, "upload.count", "call.delay_p99 < 1ms", **short)
    assert str(none) == "0"
    assert none.answers[0].at is None
    rate = sj.capacity(CASE, "up.rate", "call.delay_p99 < 1ms", between=("5mbit", "6mbit"), seeds=1)
    assert str(rate) == "none"
    assert any("no interval" in text for text in rate.answers[0].remarks)


def test_runs_are_stored_and_shared_with_sweeps(tmp_path: Path) -> None:
    """The same search makes no run twice, and takes the runs of a sweep of the same scenario."""
    options: dict[str, Any] = {"between": (1, 40), "seeds": 3, "out": tmp_path / "runs"}
    first = sj.capacity(CASE, "upload.count", NEED, **options)
    assert first.executed == first.runs
    again = sj.capacity(CASE, "upload.count", NEED, **options)
    assert again.executed == 0
    assert again.summary()["answers"] == first.summary()["answers"]
    rows = sj.results(tmp_path / "runs")
    assert len(rows) == first.runs
    sj.sweep(CASE, {"upload.count": list(range(1, 41))}, seeds=3, out=tmp_path / "sweep")
    swept = sj.capacity(CASE, "upload.count", NEED, **(options | {"out": tmp_path / "sweep"}))
    assert swept.executed == 0
    other = CASE | {"duration": "5s"}
    with pytest.raises(sj.InputError, match="holds the runs of a sweep of another scenario"):
        sj.capacity(other, "upload.count", NEED, **options)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the answers, a table, JSON, and draws the figure."""
    file = tmp_path / "office.toml"
    sj.save_scenario(CASE, file)
    figure = tmp_path / "figure.png"
    words = ["capacity", str(file), "--vary", "upload.count", "--need", NEED, "--between", "1..64",
             "--qdisc", "fq_codel,droptail", "--seeds", "3"]  # fmt: skip
    assert main([*words, "--plot", str(figure)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("largest upload.count: fq_codel ")
    assert "droptail 0" in text
    assert figure.stat().st_size > 10_000
    assert main([*words, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert [one["qdisc"] for one in tree["answers"]] == ["fq_codel", "droptail"]
    assert tree["answers"][1]["value"] == 0
    assert {row["need"] for row in tree["values"]} == {NEED}


BAD = [
    ({"vary": "upload.cuont"}, 'unknown key "cuont", did you mean "count"?'),
    ({"vary": "uq.rate"}, '"uq" is not a link, flow or key of the scenario, did you mean "up"?'),
    ({"vary": "up.qdisc"}, "is not a whole number, nor a quantity with a unit"),
    ({"vary": "call.rtt"}, "give the range, like --between 1..100"),
    ({"needs": "call.delay_p9 < 30ms"}, 'no column "call.delay_p9", did you mean'),
    ({"needs": "call.delay_p99 < 30"}, '"30" has no unit'),
    ({"needs": "call.delay_p99 is 30"}, "write it as 'METRIC < VALUE'"),
    ({"needs": "utilisation > 9ms"}, '"9ms" is not a number like 0.01 or 1%'),
    ({"needs": "queue_mean < 9"}, '"9" is not a size like 300kB'),
    ({"needs": []}, "--need: give at least one"),
    ({"needs": [NEED, NEED]}, "two needs are about the same side"),
    ({"between": (9, 3)}, "9 to 3 is not an ascending range"),
    ({"between": ("x", 3)}, "flows.upload.count: "),
    ({"vary": "up.qdisc.limit", "between": ("4p", "40kB")}, "the ends have different units"),
    ({"seeds": 0}, "--seeds: 0 is out of range"),
    ({"digits": 9}, "--digits: 9 is out of range"),
    ({"find": "biggest"}, 'unknown direction "biggest"'),
    ({"qdiscs": "nope"}, 'unknown discipline "nope"'),
    ({"qdiscs": "codel,codel"}, "a discipline is given twice"),
    ({"over": ("upload.count", [1])}, "needs a key other than --vary"),
    ({"over": ("up.rate", ["3"])}, "links.up.rate: 3 has no unit"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    """Each answer is one line with the option and what is allowed."""
    options: dict[str, Any] = {"vary": "upload.count", "needs": NEED} | change
    with pytest.raises(sj.InputError) as error:
        make_plan(CASE, options.pop("vary"), options.pop("needs"), **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_needs_have_the_units_of_their_columns() -> None:
    """Columns with and without unit, of the measured link by name, metrics with arguments."""
    whole = canonical(CASE)
    forms = {
        "call.delay_p99_s<=30ms": ("call.delay_p99_s", False, 0.03),
        "up.sojourn_mean < 2s": ("sojourn_mean_s", False, 2.0),
        "upload.goodput >= 9Mbit/s": ("upload.goodput_bps", True, 9e6),
        "queue_mean < 15kB": ("queue_mean_bytes", False, 15_000),
        "dropped_packets < 40": ("dropped_packets", False, 40),
        "loss_rate < 1 %": ("loss_rate", False, 0.01),
        'jain_index(groups=["upload", "call"]) > 0.9': (
            "jain_index(groups=['upload', 'call'])", True, 0.9,
        ),
    }  # fmt: skip
    for text, expected in forms.items():
        needs, _ = read_needs([text], whole, None)
        assert (needs[0].column, needs[0].is_above, needs[0].limit) == expected


def test_signs_of_verdicts() -> None:
    """Value and interval are compared with the limit on the side of the need."""
    below, above = (
        read_needs([f"loss_rate {sign} 10%"], canonical(CASE), None)[0][0] for sign in "<>"
    )
    for low, value, high in product((0.05, 0.15), repeat=3):
        one = Estimate(value, low, high, 5, 5)
        assert below.verdict(one) == Verdict(
            value < 0.1, low < 0.1 and high < 0.1, low > 0.1 and high > 0.1
        )
        assert above.verdict(one) == Verdict(
            value > 0.1, low > 0.1 and high > 0.1, low < 0.1 and high < 0.1
        )
    assert below.verdict(Estimate(None, None, None, 0, 5)) == Verdict(
        is_met=False, is_sure=False, is_out=False, has_interval=False
    )
