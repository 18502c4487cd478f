"""Mutated options of `sojourn paper` and `sojourn link`: refused in one line, or started."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer

from conftest import Command
from mutation import LONG

BEGUN = 77
"""The exit code of this test where something would be run."""

REFUSED = (2, 126, 127)
"""Exit codes for bad input, and for a command that is not executable or does not exist."""

WORDS = (
    "", "-", "--", "-1", "0", "1", "2.5", "nan", "inf", "1e300", "9" * 30, "true", "x", "=", "a=",
    "=1", "rate=", "rate=5", "rate=5mbit", "qdisc=red", "qdisc.limit=5p", "qdisc.x=1", "qdisc=[1]",
    "loss=2", "loss={p=0.1}", "loss={x=1}", "trace=/dev/null", "trace={file=5}", "10mbit", "10mbps",
    "codel(target=5ms)", "codel(", '["codel"]', "{}", "é", "a b", "\x1b[31m", "/", "/dev/null",
    "/proc/x", "live", "sim", "--force", "--json", "--full", "--no-such", LONG,
)  # fmt: skip

PAPER = ["paper", "run", "codel-vs-drr", "--out", "OUT", "--figure", "4.1", "--quick", "--jobs",
         "1", "--engine", "sim", "--set", "rtt=20ms"]  # fmt: skip
CHECK = ["paper", "check", "hred", "--sample", "3", "--draw", "1", "--pages", "OUT/pages", "--jobs",
         "1"]  # fmt: skip
LINK = ["link", "--rate", "10mbit", "--delay", "25ms", "--qdisc", "codel", "--set", "target=5ms",
        "--loss", "0.01", "--up", "rate=1mbit", "--down", "delay=5ms", "--sample", "100ms",
        "--seed", "1", "--log", "OUT/log.jsonl", "--", "true"]  # fmt: skip


def lines(good: list[str]) -> Iterator[list[str]]:
    """Yield lines with words replaced by each of WORDS or removed, some with several changes."""
    for i in range(1, len(good)):
        yield [*good[:i], *good[i + 1 :]]
        for word in WORDS:
            yield [*good[:i], word, *good[i + 1 :]]
    rng = random.Random(1)
    for _ in range(150):
        mutant = list(good)
        for _ in range(rng.randint(2, 4)):
            i = rng.randrange(1, len(mutant))
            mutant[i : i + rng.randrange(2)] = [rng.choice([*WORDS, *good[1:]])]
        yield mutant


def begun(*_: Any, **__: Any) -> NoReturn:
    """Replace the function that would run."""
    raise typer.Exit(BEGUN)


@pytest.mark.parametrize("good", [PAPER, CHECK, LINK], ids=["run", "check", "link"])
def test_mutated_options_are_refused_in_one_line_or_begin(
    good: list[str], tmp_path: Path, sojourn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, 126 or 127 and a line, help, or a start; never a traceback."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "sojourn_lab.reproduction.run.run",
        "sojourn_lab.reproduction.check.sample",
        "sojourn_lab.reproduction.check.full",
        "sojourn.live.link.run",
        "sojourn.live.link.enter_own_network",
    ):
        monkeypatch.setattr(name, begun)
    monkeypatch.setenv("SHELL", "/bin/sh")
    page = tmp_path / "pages/hred/claims.json"
    page.parent.mkdir(parents=True)
    page.write_text('{"claims": []}')
    refused = ran = 0
    for line in lines(good):
        words = [word.replace("OUT", str(tmp_path)) for word in line]
        code, out, err = sojourn(*words)
        message = f"{[word[:40] for word in words]}: {code} {out[:200]} {err[:500]}"
        assert code in (0, *REFUSED, BEGUN), message
        assert "fault" not in err, message
        if code in REFUSED:
            refused += 1
            assert err.startswith("sojourn: "), message
            assert err.count("\n") == 1, message
            assert len(err) < 1700, message
        ran += code == BEGUN
    assert refused > 200
    assert ran > 5
