"""Number of times that a scenario is parsed on its way to Rust, and the files that it passes."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import sojourn
from sojourn._sojourn import ParsedScenario
from sojourn.cli.main import main
from sojourn.scenario import draft
from sojourn.sweeps.spec import make_sweep, run_sweep

STOPS, REENTRIES = 15, 3
"""Largest number of stops in files, and of stops in a file that had one before."""

PACKAGE = str(Path(sojourn.__file__).parent)


class Arrived(BaseException):
    """The scenario is in Rust."""


def watch(monkeypatch: pytest.MonkeyPatch, parsing: Callable[[], object]) -> None:
    """Call `parsing` whenever a scenario is parsed."""

    class Watched(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, ParsedScenario)

        def __call__(cls, text: str) -> ParsedScenario:
            parsing()
            return ParsedScenario(text)

    class Stand(metaclass=Watched):
        pass

    monkeypatch.setattr(draft, "ParsedScenario", Stand)


@pytest.mark.parametrize(
    ("arguments", "parses"),
    [
        (["run"], 1),
        (["run", "--qdisc", "codel", "--link", "up", "--plot", "fig.png"], 1),
        (["run", "--qdisc", "codel", "--set", "bulk.count=1", "--seed", "7", "--out", "dir"], 1),
        (["compare", "--qdisc", "red,codel,pie"], 4),
        (["compare", "--qdisc", "red,codel,pie", "--seeds", "2", "--plot", "fig.png"], 4),
    ],
    ids=["run", "run-plot", "run-out", "compare", "compare-plot"],
)
def test_a_scenario_is_parsed_once_per_variant(
    arguments: list[str],
    parses: int,
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A comparison also parses the scenario as it is, of which it needs link and seed."""
    monkeypatch.chdir(tmp_path)
    times: list[None] = []
    watch(monkeypatch, lambda: times.append(None))
    assert main([arguments[0], str(small), *arguments[1:]]) == 0
    assert len(times) == parses


def test_a_point_of_a_sweep_is_parsed_once(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep also parses the scenario as it is. Seeds change a parsed scenario."""
    times: list[None] = []
    watch(monkeypatch, lambda: times.append(None))
    run_sweep(make_sweep(small, {"bulk.count": [1, 2, 3]}, seeds=2))
    assert len(times) == 1 + 3


def test_the_way_to_rust_is_short(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop is a row of calls of functions of one file. Imports do not count."""
    stops: list[str] = []
    importing = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal importing
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event not in ("call", "return") or not file.startswith(PACKAGE):
            return
        if name == "<module>":
            importing += 1 if event == "call" else -1
        elif event == "call" and not importing and stops[-1:] != [file]:
            stops.append(file)

    def arrive() -> None:
        sys.setprofile(None)
        raise Arrived

    watch(monkeypatch, arrive)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        main(["run", str(small)])
    except Arrived:
        pass
    finally:
        sys.setprofile(before)
    listed = [str(Path(file).relative_to(PACKAGE)) for file in stops]
    assert listed[0] == "cli/main.py"
    assert listed[-1] == "scenario/draft.py"
    assert len(listed) <= STOPS, "\n".join(listed)
    assert len(listed) - len(set(listed)) <= REENTRIES, "\n".join(listed)
