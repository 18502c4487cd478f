"""Constants of a paper's set-up, and the choice of its figures."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from conftest import Command
from sojourn import InputError
from sojourn.scenario.draft import parse
from sojourn_lab import papers
from sojourn_lab.reproduction import paper, report, run
from sojourn_lab.reproduction.constants import Constants, Value

WITH = [name for name in papers.ids() if papers.find(name).constants is not None]
"""Papers that have constants."""


@dataclass(frozen=True)
class Example(Constants):
    """One constant of each kind."""

    rtt: str = "40ms"
    """A time."""
    rate: str = "10mbit"
    """A rate."""
    packet: str = "1000B"
    """A size."""
    window: str = "20p"
    """A number of packets."""
    ftps: int = 4
    """A count."""
    share: float = 0.1
    """A share,
    over two lines."""
    ecn: bool = False
    """A truth value."""
    tcp: str = "newreno"
    """A name."""
    paths: tuple[str, ...] = ("40ms", "80ms")
    """Several times."""


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rtt=1.5ms", "1500us"),
        ("rate=2mbit", "2mbit"),
        ("packet=1500B", "1500B"),
        ("window=30kB", "30kB"),
        ("ftps=8", 8),
        ("share=1", 1.0),
        ("ecn=true", True),
        ("tcp=sack", "sack"),
        ("paths=10ms, 20ms", ("10ms", "20ms")),
    ],
)
def test_a_setting_replaces_a_constant(setting: str, value: Value) -> None:
    """Values are kept in canonical form; the options repeat the change."""
    changed = Example.replaced([setting])
    assert changed.changed == {setting.partition("=")[0]: value}
    assert Example.replaced([one.removeprefix("--set ") for one in changed.options]) == changed
    assert Example().changed == {}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rtt=40", '--set rtt: 40 has no unit; .*allowed: a time with unit, like "?40ms'),
        ("rtt=4mbit", "--set rtt: .* allowed: a time with unit"),
        ("rtt=inf", "--set rtt: inf is not allowed, allowed: a time"),
        ("rate=10", "--set rate: .* allowed: a rate with unit"),
        ("packet=3p", "--set packet: .* allowed: a size with unit"),
        ("packet=3ms", "--set packet: .* allowed: a size with unit"),
        ("window=3ms", "--set window: .* allowed: a number of packets"),
        ("ftps=4B", "--set ftps: .* allowed: a whole number"),
        ("ftps=1.5", "--set ftps: .* allowed: a whole number"),
        ("ftps=-1", "--set ftps: .* not negative"),
        ("share=nan", "--set share: .* allowed: a number"),
        ("ecn=1", "--set ecn: .* allowed: true or false"),
        ("tcp=7", "--set tcp: .* allowed: a name"),
        ("paths=40,80", "--set paths: .* allowed: a time"),
        ("paths=", "--set paths: .* no unit|--set paths: "),
        ("rt=4ms", '--set rt: no constant of this paper, did you mean "rtt"'),
        ("rtt", "--set rtt: write it as KEY=VALUE, like rtt=40ms"),
    ],
)
def test_a_wrong_setting_is_one_clear_message(setting: str, message: str) -> None:
    """It has the option, the constant and what is allowed."""
    with pytest.raises(InputError, match=message):
        Example.replaced([setting])


def test_python_takes_the_same_values() -> None:
    """A bare number where a unit is needed is refused in Python, too."""
    assert Example(rtt="20ms", ftps=2).changed == {"rtt": "20ms", "ftps": 2}
    with pytest.raises(InputError, match="rtt: 20 has no unit"):
        Example(rtt=20)  # type: ignore[arg-type]
    assert Example().rows()[5] == ("share", "0.1", "0.1", "A share, over two lines.")


def test_every_constant_is_described() -> None:
    """A field without docstring is an error of the paper."""

    @dataclass(frozen=True)
    class Bare(Constants):
        """No text below the field."""

        ftps: int = 4

    with pytest.raises(AssertionError, match="no docstring below ftps"):
        Bare().rows()


def other(value: Any) -> Any:
    """Return another value of a constant."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return tuple(other(one) for one in value)
    if isinstance(value, str):
        parts = re.fullmatch(r"(\d+)(\w+)", value)
        return f"{2 * int(parts[1])}{parts[2]}" if parts else None
    if isinstance(value, float) and value > 1 and value.is_integer():
        return value / 2
    if isinstance(value, float) and value:
        return value * (0.9 if 0.9 <= value <= 1 else 1.1)  # a share stays one
    return value * 2 if value else 1


Trees: TypeAlias = Mapping[str, list[Mapping[str, Any]]]


def trees(one: paper.Paper, full: bool, set_up: Constants | None = None) -> Trees:
    """Return the scenarios of a mode by experiment, one per point."""
    return {
        name: [tree for _, tree in each.points]
        for name, each in one.experiments(full, set_up).items()
    }


def differ(some: Trees, others: Trees) -> bool:
    """Return True if a scenario differs in canonical form."""
    if any(len(some[name]) != len(others[name]) for name in some):
        return True
    pairs = ((a, b) for name in some for a, b in zip(some[name], others[name], strict=True))
    return any(a != b and parse(a).canonical() != parse(b).canonical() for a, b in pairs)


def has_effect(one: paper.Paper, base: Mapping[bool, Trees], changed: Constants) -> bool:
    """Return True if changed constants give other scenarios.

    Quick mode has fewer scenarios, so full mode is asked only about constants without effect there.
    The times of quick mode can be too short for a value.
    """
    with contextlib.suppress(InputError):
        if differ(base[False], trees(one, False, changed)):
            return True
    return differ(base[True], trees(one, True, changed))


@pytest.mark.parametrize("name", WITH)
def test_every_constant_changes_a_scenario(name: str) -> None:
    """No constant is without effect, and the defaults give the paper's scenarios."""
    one = papers.find(name)
    assert one.constants is not None
    base, default = {full: trees(one, full) for full in (False, True)}, one.constants()
    assert not any(differ(base[full], trees(one, full, default)) for full in base)
    for constant, *_ in default.rows():
        value = other(getattr(default, constant))
        if value is not None:  # a name
            assert has_effect(one, base, one.set_up(**{constant: value})), constant


def test_a_report_names_the_changed_constants(tmp_path: Path) -> None:
    """Its command has the options, and its table the default of what was changed."""
    one = papers.find("codel-vs-drr")
    set_up = one.set_up(ftps=1, duration="12s")
    outcome = run.run(one, full=False, store=tmp_path / "runs", figures=["4.4"], set_up=set_up)
    report.write_report(outcome, tmp_path)
    command = "codel-vs-drr --quick --figure 4.4 --set ftps=1 --set duration=12s --out DIR"
    for page in ("report.md", "report.html"):
        assert command in (tmp_path / page).read_text()
    assert "| ftps | 1 | 4 | FTPs in each direction. |" in (tmp_path / "data.md").read_text()
    assert "| rtt | 40ms |  |" in (tmp_path / "data.md").read_text()
    tree = json.loads((tmp_path / "claims.json").read_text())
    assert tree["set"] == {"ftps": 1, "duration": "12s"}


def test_a_value_that_breaks_a_scenario_names_the_option(tmp_path: Path) -> None:
    """The error of the scenario follows the option."""
    one = papers.find("codel-vs-drr")
    with pytest.raises(InputError, match=r"--set drr_buckets=0: .*qdisc\.flows: 0 is out of range"):
        run.run(one, full=False, store=tmp_path, set_up=one.set_up(drr_buckets=0))


def test_a_constant_without_effect_is_refused(tmp_path: Path) -> None:
    """The packets of the FTPs have the size of the MTU in figure 4.4."""
    one = papers.find("codel-vs-drr")
    set_up = one.set_up(packet="500B", duration="12s")
    with pytest.raises(InputError, match="--set packet=500B: no run of these figures"):
        run.run(one, full=False, store=tmp_path, figures=["4.4"], set_up=set_up)


def test_a_number_stands_for_its_panels() -> None:
    """Figure 7 is 7a to 7d, and 1 is not 10a."""
    one = papers.find("hred")

    def numbers(*words: str) -> list[str]:
        return [it.number for it in paper.chosen(one, one.figures, words)]

    assert numbers("7") == ["7a", "7b", "7c", "7d"]
    assert numbers("7a", "8") == ["7a", "8"]
    assert {"7a", "7b", "7c", "7d"} < set(numbers("7", "9"))
    assert paper.panel_of("3 goodput", "3")
    assert not paper.panel_of("10a", "1")
    assert not paper.panel_of("network", "n")
    for wrong in ("1", "n", "", "7e", "Table"):
        with pytest.raises(InputError, match="no figure"):
            numbers(wrong)


def test_claims_about_more_figures_say_so() -> None:
    """A claim about 7a to 7d is judged with 7, and named with 7a."""
    one = papers.find("hred")

    def claims(*words: str) -> tuple[set[str], set[str]]:
        shown = paper.chosen(one, one.figures, words)
        judged = paper.claims_about(one, shown)
        return {c.id for c in judged}, {c.id for c in paper.claims_in_part(one, shown)}

    whole, part = claims("7")
    assert "003-C13" in whole
    assert "003-C13" not in part
    whole, part = claims("7a")
    assert "003-C13" not in whole
    assert "003-C13" in part
    claim = next(c for c in one.claims if c.id == "003-C13")
    assert paper.needs_figures(claim) == "needs figures 7a, 7b, 7c, 7d"


def test_claims_in_part_are_listed(tmp_path: Path, sojourn: Command) -> None:
    """The list of verdicts has them with the figures that they need."""
    words = ["paper", "run", "codel-vs-drr", "--figure", "4.3", "--set", "duration=12s"]
    code, out, _ = sojourn(*words, "--set", "ftps=1", "--out", str(tmp_path))
    assert code == 0
    assert "needs figures 4.1, 4.3" in out
    tree = json.loads((tmp_path / "codel-vs-drr/claims.json").read_text())
    assert tree["not_judged"] == [{"id": "004-C14", "why": "needs figures 4.1, 4.3"}]


@pytest.mark.parametrize("name", WITH)
def test_times_rates_and_bytes_have_units(name: str) -> None:
    """A number without unit is a count, a share or a gain."""
    for constant, _, default, text in papers.find(name).set_up().rows():
        is_bare = default.replace(".", "", 1).isdigit()
        unit = re.search(r", in (ns|us|ms|s|[kMG]bit/s|[kM]?B|bytes)\b", text)
        assert not (is_bare and unit), constant
