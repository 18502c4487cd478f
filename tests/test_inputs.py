"""Quoting of input in messages: shortened, on one line, with the nearest names."""

import math
from pathlib import Path
from typing import Any

import pytest

from conftest import SMALL, Command
from sojourn._util.inputs import brief, near, shown

LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("codel", '"codel"'),
        ('a"b\n', '"a\\"b\\n"'),
        ("x" * 60, f'"{"x" * 60}"'),
        (LONG, f'"{"x" * 60}..." (100000 characters)'),
        (True, "true"),
        (2.5, "2.5"),
        (math.inf, "inf"),
        (["codel", 3], '["codel", 3]'),
        ({"a": LONG}, f'{{"a": "{"x" * 53}...'),
        ([10**5000], "a value of type list"),
        ("\u202e", '"\\u202e"'),
    ],
)
def test_values_are_quoted_as_json_and_cut(value: Any, message: str) -> None:
    """Quotes, control characters and right-to-left marks cannot break the line."""
    assert shown(value) == message


def test_brief_is_one_line() -> None:
    """Options are quoted without quotation marks."""
    assert brief("a\n b\x1b") == "a b"
    assert brief(LONG) == "x" * 60 + "... (100000 characters)"


def test_near_suggests_and_bounds_what_it_lists() -> None:
    """The list of names is bounded too: a scenario may have 65,000 links."""
    assert near("cdoel", ["red", "codel"]) == ', did you mean "codel"? (known: red, codel)'
    assert near("", ["red"]) == " (known: red)"
    assert near("link7x", [f"link{i}" for i in range(13)]) == ', did you mean "link7"?'
    text = near("up", [f"link{i}" for i in range(65_000)])
    assert len(text) < 1100
    assert text.endswith(" more)")


# Command lines with a long word in them; S stands for the small scenario, X for the word.
LINES: list[list[str]] = [
    ["run", "S", "--set", "X"],
    ["run", "S", "--set", "X=1"],
    ["run", "S", "--set", "up.X=1"],
    ["run", "S", "--set", "up.rate.X=1"],
    ["run", "S", "--set", "up.rate=X"],
    ["run", "S", "--set", "up.qdisc=X"],
    ["run", "S", "--set", 'up.qdisc=["X"]'],
    ["run", "S", "--set", "up.qdisc.X=1"],
    ["run", "S", "--set", "up.qdisc.target=1X"],
    ["run", "S", "--set", "up.loss=X"],
    ["run", "S", "--set", "bulk.path=['X']"],
    ["run", "S", "--set", "bulk.rtt=uniform(X)"],
    ["run", "S", "--set", "name=X", "--set", "seed=X"],
    ["run", "S", "--set", "flows=X"],
    ["run", "S", "--seed", "X"],
    ["run", "S", "--engine", "X"],
    ["run", "S", "--plot", "X"],
    ["run", "X"],
    ["run", "S", "--X"],
    ["compare", "S", "--qdisc", "X"],
    ["compare", "S", "--qdisc", "red,,X"],
    ["compare", "S", "--qdisc", "red", "--link", "X"],
    ["list", "X"],
    ["list", "X", "red"],
    ["list", "disciplines", "X"],
    ["list", "scenario", "X"],
    ["new", "X"],
    ["paper", "run", "X", "--out", "o"],
    ["paper", "run", "hred", "--figure", "X", "--out", "o"],
    ["results", "X"],
    ["plot", "X", "--y", "a", "--out", "a.png"],
    ["sweep", "X", "--out", "o"],
    ["replay", "X", "--qdisc", "red", "--rate", "1mbit", "--out", "o.csv"],
    ["link", "--rate", "X"],
    ["link", "--rate", "1mbit", "--set", "X"],
    ["link", "--rate", "1mbit", "--set", "X=1"],
    ["link", "--rate", "1mbit", "--up", "X"],
    ["link", "--rate", "1mbit", "--up", "X=1"],
    ["link", "--rate", "1mbit", "--trace", "X"],
    ["link", "--rate", "1mbit", "--", "X"],
    ["X"],
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_refusal_is_short_however_long_the_input(
    line: list[str], tmp_path: Path, sojourn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 60 characters of the input, its length, and 1000 characters of known names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "S").with_suffix(".toml").write_text(SMALL)
    words = ["S.toml" if word == "S" else word.replace("X", LONG) for word in line]
    code, out, err = sojourn(*words)
    expected = 127 if "--" in line else 2  # a shell's code for a command that does not exist
    assert (code, out) == (expected, ""), err
    assert err.count("\n") == 1
    assert "fault" not in err
    assert len(err) < 1600, err
