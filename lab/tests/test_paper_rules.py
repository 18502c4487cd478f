"""Rules of judging: results of parts, verdicts, settings and their controls."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from sojourn_lab.reproduction import claims, judging, parts
from sojourn_lab.reproduction.claims import Claim, Setting
from sojourn_lab.reproduction.judging import Judged, Tried
from sojourn_lab.reproduction.parts import Part

HELD = Part("a", "b", "c", "holds")
FAILED = Part("a", "b", "c", "fails")
OPEN = Part("a", "b", "c", "undecided")
UNTESTED = Part("a", "b", "c", "not testable")
CLAIM = Claim("x", "", "", "", "")


@pytest.mark.parametrize(
    ("of", "judged", "kind"),
    [
        ([HELD, HELD], "holds", "holds"),
        ([HELD, FAILED, HELD], "holds in 2 of 3", "holds in"),
        ([HELD, FAILED, FAILED, HELD], "holds in 2 of 4", "holds in"),
        ([HELD, FAILED, FAILED], "does not hold", "does not hold"),
        ([FAILED], "does not hold", "does not hold"),
        ([OPEN], "undecided", "undecided"),
        ([HELD, HELD, OPEN], "undecided", "undecided"),
        ([HELD, OPEN, FAILED], "undecided", "undecided"),
        ([HELD, HELD, OPEN, FAILED], "holds in 2 of 4", "holds in"),
        ([OPEN, FAILED, FAILED], "does not hold", "does not hold"),
        ([UNTESTED, UNTESTED], "not testable (one seed)", "not testable"),
        ([HELD, UNTESTED], "undecided", "undecided"),
        ([], "not testable", "not testable"),
    ],
)
def test_verdict_follows_from_parts(of: list[Part], judged: str, kind: str) -> None:
    """A claim is undecided if its undecided parts decide between two other verdicts."""
    assert judging.verdict(of) == judged
    assert judging.kind(judged) == kind


def judged(ours: list[Part], **tried: tuple[list[Part], list[Part]]) -> Judged:
    """Return a claim with these parts, and by setting the parts with it and of its control."""
    return Judged(CLAIM, ours, {name: Tried(*both) for name, both in tried.items()})


@pytest.mark.parametrize(
    ("with_it", "control", "verdict", "count"),
    [
        ([HELD, HELD], [FAILED, FAILED], "depends on pause", "0 of 2; with it 2 of 2"),
        ([HELD, FAILED], [FAILED, FAILED], "depends on pause", "0 of 2; with it 1 of 2"),
        ([HELD, HELD], [HELD, HELD], "does not hold", "0 of 2"),
        ([FAILED, FAILED], [FAILED, FAILED], "does not hold", "0 of 2"),
        ([HELD], [FAILED], "does not hold", "0 of 2"),
    ],
)
def test_a_setting_decides_only_against_its_control_and_on_all_parts(
    with_it: list[Part], control: list[Part], verdict: str, count: str
) -> None:
    """Fewer seeds, or fewer parts, alone do not make a claim depend on a setting."""
    one = judged([FAILED, FAILED], pause=(with_it, control))
    assert (one.verdict, one.shown()) == (verdict, count)
    assert judging.kind(verdict) in ("depends on", "does not hold")


def test_a_claim_that_gains_less_than_half_does_not_depend() -> None:
    """One of three parts with a setting is no claim that holds with it."""
    one = judged([FAILED] * 3, pause=([HELD, FAILED, FAILED], [FAILED] * 3))
    assert one.verdict == "does not hold"
    more = judged([HELD, HELD, FAILED], pause=([HELD, HELD, FAILED], [HELD, FAILED, FAILED]))
    assert more.verdict == "holds in 2 of 3", "not more than with all our seeds"


def test_a_claim_that_holds_is_tried_with_every_setting() -> None:
    """A setting counts if it judges all parts and differs from a control that does not hold."""
    one = judged(
        [HELD, HELD],
        same=([HELD, HELD], [HELD, HELD]),
        broken=([HELD, FAILED], [HELD, HELD]),
        few_seeds=([HELD, OPEN], [HELD, OPEN]),
        few_parts=([FAILED], [HELD]),
    )
    assert one.verdict == "holds (in 2 of 3 settings)"
    assert judging.kind(one.verdict) == "holds"
    assert judged([HELD]).verdict == "holds"
    assert judged([HELD], few_seeds=([OPEN], [OPEN])).verdict == "holds"


def test_numbers_and_relations_are_counted_apart() -> None:
    """With a setting that the verdict names, both counts are shown."""
    number = parts.exact("x", 2.0, 1.0, within=0.1)
    close = parts.exact("x", 1.0, 1.0, within=0.1)
    one = judged([number, HELD, OPEN, FAILED], pause=([close, HELD, HELD, FAILED], [number] * 4))
    assert one.shown(is_number=True) == "0 of 1; with it 1 of 1"
    assert one.shown(is_number=False) == "1 of 3, 1 undecided; with it 2 of 3"
    assert one.shown() == "1 of 4, 1 undecided; with it 3 of 4"
    assert judged([HELD]).shown(is_number=True) == ""


def test_a_claim_holds_except_with_the_cases_in_which_it_does_not() -> None:
    """A case is what a part is about, such as a sender; each part counts once."""

    def judged(**cases: list[Part]) -> Judged:
        ours = [dataclasses.replace(part, case=name) for name, it in cases.items() for part in it]
        return Judged(Claim("x", "", "", "", ""), ours)

    one = judged(A=[HELD, HELD], B=[HELD, FAILED], C=[HELD])
    assert (one.verdict, one.shown()) == ("holds except with B", "4 of 5")
    assert judged(A=[HELD], B=[HELD], C=[FAILED], D=[OPEN]).verdict == "holds except with C and D"
    assert judged(A=[HELD], B=[FAILED, HELD], C=[FAILED, HELD]).verdict == "holds in 3 of 5"
    assert judged(A=[HELD], B=[HELD]).verdict == "holds"
    assert judged(A=[HELD, FAILED]).verdict == "holds in 1 of 2"
    assert judging.kind("holds except with A and C") == "holds except with"


@pytest.mark.parametrize(
    ("of", "verdict"),
    [
        ([OPEN], "not judged by a quick run"),
        ([HELD, HELD, OPEN], "not judged by a quick run"),
        ([OPEN, FAILED, FAILED], "not judged by a quick run"),
        ([UNTESTED], "not judged by a quick run"),
        ([UNTESTED, FAILED, FAILED], "not judged by a quick run"),
        (
            [parts.number("no value in some run", [float("nan"), 1.0], 1.0)],
            "not judged by a quick run",
        ),
        ([FAILED, FAILED, HELD], "does not hold"),
        ([HELD, HELD, OPEN, FAILED], "holds in 2 of 4"),
        ([HELD], "holds"),
    ],
)
def test_a_quick_run_judges_only_what_its_intervals_decide(of: list[Part], verdict: str) -> None:
    """The full run, with more seeds, is undecided, or does not hold."""
    assert Judged(CLAIM, of, quick=True).verdict == verdict
    assert judging.kind(verdict) in judging.KINDS
    assert Judged(CLAIM, of).verdict != "not judged by a quick run"
    assert Judged(Claim("x", "", "", "", "why"), [], quick=True).verdict == "not testable (why)"


def test_the_best_single_set_up_holds_at_once() -> None:
    """A claim that a setting does not cover, or judges as its control, counts as in our set-up."""
    claims_of = [
        judged([HELD], other=([FAILED], [HELD])),  # lost with other
        judged([FAILED], other=([HELD], [FAILED]), more=([HELD], [FAILED])),
        judged([FAILED], other=([HELD], [FAILED]), more=([HELD], [HELD])),  # more: by few seeds
        judged([HELD, FAILED], more=([HELD, HELD], [HELD, FAILED])),
        judged([FAILED, FAILED], more=([HELD], [FAILED])),  # fewer parts
        judged([HELD]),
    ]
    counts = {one.name: (one.hold, one.in_part, one.judged) for one in judging.set_ups(claims_of)}
    assert counts == {"more": (4, 0, 3), "other": (3, 1, 3), "our set-up": (2, 1, 6)}
    assert list(counts) == ["more", "other", "our set-up"], "the best is first"


def test_ours_is_the_best_set_up_if_no_setting_is_better() -> None:
    """Ties do not favour a setting."""
    tie = judged([HELD], other=([HELD, FAILED], [HELD]), same=([HELD], [HELD]))
    assert [one.name for one in judging.set_ups([tie])] == ["our set-up", "same", "other"]


def runs() -> dict[str, pl.DataFrame]:
    """Return rows of an experiment, and rows of one of its points with a setting."""
    axes = {"axes": '["q", "x"]', "measured": '["y"]'}
    base = [
        {"q": q, "x": x, "seed": n, "y": 1.0, **axes}
        for q in ("a", "b") for x in (1, 2) for n in (1, 2, 3)
    ]  # fmt: skip
    other = [{"q": "a", "x": 1, "seed": n, "y": 5.0, "s": "on", **axes} for n in (1, 2)]
    return {"e": pl.DataFrame(base), "more": pl.DataFrame(other)}


def rule(frames: claims.Runs, less: str = "b", more: str = "a", x: int = 1) -> Sequence[Part]:
    """Compare the values of `runs` at one point."""
    return [
        parts.order("order", *(claims.values(frames["e"], "y", q=q, x=x) for q in (less, more)))
    ]


def claim(*settings: Setting, **options: Any) -> Claim:
    """Return a claim about `runs` with these settings."""
    return Claim("x", "", "", "", "", lambda it: rule(it, **options), ("e",), settings)


def test_a_setting_replaces_rows_and_keeps_pairs() -> None:
    """Rows of a setting replace those with the same labels; only common seeds and places remain."""
    on = Setting("s on", {"e": claims.overlay("more", only=("x",), s="on")})
    merged = on.apply(runs(), claim())["e"].sort("q", "x", "seed")
    assert merged.select("q", "x", "seed", "y").rows() == [
        ("a", 1, 1, 5.0), ("a", 1, 2, 5.0), ("b", 1, 1, 1.0), ("b", 1, 2, 1.0),
    ]  # fmt: skip
    one = judging.judge(claim(on), runs())
    assert (one.verdict, one.shown()) == ("depends on s on", "0 of 1; with it 1 of 1")
    assert claim(on).every_need == ("e", "more")


def test_settings_whose_runs_are_missing_or_equal_are_not_listed() -> None:
    """Quick mode omits the runs of some settings; others do not touch what a claim reads."""
    on = Setting("s on", {"e": claims.overlay("more", s="on")})
    missing = Setting("s off", {"e": claims.overlay("more", s="off")})
    assert list(judging.judge(claim(missing, on), runs()).tried) == ["s on"]
    assert not judging.judge(claim(on, x=2), runs()).tried, "the setting changes x = 1 only"


def test_the_control_has_the_seeds_of_the_setting() -> None:
    """A rise that the first two seeds have by chance is no effect of the setting."""
    frames = runs()
    frames["e"] = frames["e"].with_columns(
        y=pl.when(q="a", seed=3).then(0.0).when(q="a").then(2.0).otherwise(1.0)
    )
    frames["more"] = frames["more"].with_columns(y=2.5)
    one = judging.judge(claim(Setting("s on", {"e": claims.overlay("more", s="on")})), frames)
    (tried,) = one.tried.values()
    assert [part.result for part in (*one.parts, *tried.control)] == ["undecided", "holds"]
    assert one.verdict == "undecided"


def test_a_setting_may_read_rows_differently_and_name_its_claims() -> None:
    """A function of the rows, for the claims that it is about."""
    twice = Setting("twice", {"e": lambda f: f.with_columns(y=pl.col("y") + (pl.col("q") == "a"))})
    one = judging.judge(claim(twice), runs())
    assert one.verdict == "depends on twice"
    assert twice.concerns(claim())
    assert not Setting("other", {"f": twice.replaces["e"]}).concerns(claim())
    assert not Setting("named", twice.replaces, claims=("y",)).concerns(claim())
    assert Setting("named", twice.replaces, claims=("x",)).concerns(claim())


NAN = float("nan")


@pytest.mark.parametrize(
    ("samples", "options", "result"),
    [
        ([12.0, 12.0], {}, "holds"),
        ([12.1, 12.1], {}, "fails"),
        ([7.9, 7.9], {}, "fails"),
        ([11.8, 12.0, 12.5], {}, "undecided"),  # 12.1 ± 0.9: the mean is outside
        ([5.0, 10.0, 15.0], {}, "undecided"),  # agrees by luck
        ([10.0, 20.0, 30.0], {}, "undecided"),
        ([20.0, 21.0, 22.0], {}, "fails"),
        ([10.0], {}, "not testable"),
        ([NAN, 10.0], {}, "fails"),
        ([10.03, 10.03], {"points": 0.03}, "holds"),
        ([10.04, 10.04], {"points": 0.03}, "fails"),
    ],
)
def test_a_number(samples: list[float], options: dict[str, Any], result: str) -> None:
    """Holds within the tolerance, with an interval no wider; fails if all of it is outside."""
    part = parts.number("x", samples, 10.0, **options)
    assert (part.result, part.is_number) == (result, True)


def test_a_number_is_written_with_unit_and_interval() -> None:
    """Values are scaled first."""
    part = parts.number("x", [0.0115, 0.012, 0.0125], 10.0, unit="ms", scale=1e3)
    assert part.stated == "10 ms"
    # t(2, 0.975) = 4.303, std = 0.5, so half = 4.303 * 0.5 / sqrt(3) = 1.242.
    assert part.measured == "12.0 ± 1.2 ms"


@pytest.mark.parametrize(
    "part",
    [
        parts.number("x", [10.0], 10.0),
        parts.bound("x", [1.0], "<", 2.0),
        parts.order("x", [1.0], [2.0]),
        parts.order("x", [], []),
        parts.equal("x", [1.0], [1.0], within=0.1),
        parts.monotone("x", [[1.0], [2.0]]),
        parts.shape("x", None, ""),
    ],
)
def test_one_seed_is_not_testable(part: Part) -> None:
    """A single run has no interval, so it neither holds nor fails."""
    assert part.result == "not testable"


def test_an_exact_value_needs_no_seeds() -> None:
    """A formula has no random error."""
    assert parts.exact("x", 1.0005, 1.0, within=0.001).result == "holds"
    assert parts.exact("x", 1.002, 1.0, within=0.001).result == "fails"


def test_a_shape_may_be_undecided() -> None:
    """The rule's author says so."""
    each = [parts.shape("x", holds, "", undecided=True).result for holds in (True, False, None)]
    assert each == ["holds", "fails", "undecided"]


SEEDS = np.array([1.0, 50.0, 100.0])


@pytest.mark.parametrize(
    ("difference", "result"),
    [
        ([1.0, 1.1, 0.9], "holds"),
        ([1.0, -1.0, 0.5], "undecided"),
        ([-1.0, -1.1, -0.9], "fails"),
        ([0.0, 0.0, 0.0], "fails"),
        ([NAN, 1.0, 1.0], "fails"),
    ],
)
def test_an_order_looks_at_the_paired_interval(difference: list[float], result: str) -> None:
    """The seeds differ far more than the disciplines: only the paired difference is significant."""
    more = SEEDS + np.array(difference)
    assert parts.order("x", SEEDS, more).result == result
    assert parts.monotone("x", [SEEDS - 1, SEEDS, more]).result == result
    assert parts.monotone("x", [1 - SEEDS, -SEEDS, -more], -1).result == result


def test_a_step_in_the_wrong_direction_is_shown() -> None:
    """It decides, even if another step has a wider interval."""
    part = parts.monotone("x", [SEEDS, SEEDS - 1, SEEDS + np.array([9.0, -9.0, 0.0])])
    assert part.result == "fails"
    assert part.value is not None
    assert part.value.mean == pytest.approx(-1)


@pytest.mark.parametrize(
    ("ours", "within", "result"),
    [
        ([9.99, 9.995], 0.011, "holds"),
        ([9.0, 11.0], 0.01, "undecided"),
        ([9.5, 9.5], 0.01, "fails"),
        ([10.5, 10.5], 0.01, "fails"),
    ],
)
def test_equal_looks_at_the_interval_of_the_difference(
    ours: list[float], within: float, result: str
) -> None:
    """The tolerance is a share of the second mean, or absolute."""
    theirs = [10.0, 10.0]
    assert parts.equal("x", ours, theirs, within=within).result == result
    assert parts.equal("x", ours, theirs, points=10 * within).result == result


@pytest.mark.parametrize(
    ("samples", "relation", "limit", "result"),
    [
        ([1.0, 1.01], "<", 1.6, "holds"),
        ([1.0, 2.0], "<", 1.6, "undecided"),
        ([2.0, 2.01], "<", 1.6, "fails"),
        ([2.0, 2.01], ">", 1.4, "holds"),
        ([1.0, 2.0], ">", 1.4, "undecided"),
        ([1.0, 1.01], ">", 1.4, "fails"),
    ],
)
def test_a_bound(samples: list[float], relation: Any, limit: float, result: str) -> None:
    """The whole interval decides."""
    assert parts.bound("x", samples, relation, limit).result == result
