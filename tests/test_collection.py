"""The command `sojourn paper` with and without the package that has the papers."""

import importlib.metadata
from typing import Any

import pytest

from conftest import Command
from sojourn.cli import suggest


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that no distribution has the entry point."""

    def entry_points(**_: Any) -> tuple[()]:
        return ()

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    "words", [("paper", "list"), ("paper", "run", "hred", "--out", "x"), ("list", "papers")]
)
def test_without_papers_one_line_says_how_to_install_them(
    words: tuple[str, ...], sojourn: Command
) -> None:
    """The exit code is 2."""
    code, out, err = sojourn(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'sojourn[papers]'" in err


@pytest.mark.usefixtures("nothing_installed")
def test_without_papers_the_other_lists_remain(sojourn: Command) -> None:
    """The list of everything has no papers, and completion offers none."""
    assert sojourn("list", "codel")[0] == 0
    assert '"papers": []' in sojourn("list", "--json")[1]
    assert not list(suggest.papers(""))


def test_with_papers_they_are_offered() -> None:
    """Completion finds them by the entry point."""
    assert "hred" in suggest.papers("")
