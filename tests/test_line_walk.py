"""The whole way on real packets: measure a bloated line, recommend, install, measure, verify.

The printed commands are installed in the namespace behind `sojourn link`, if the kernel has their
qdiscs. Otherwise they must fail without harm, and `sojourn link` itself has the recommended
discipline at the recommended rates.

The discipline is `fq_codel`. The word `ingress` of `cake` charges dropped packets to the download:
four transfers over 10 ms then keep 81 % of the line instead of 95 %.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from live_link import ENVIRONMENT, FAR, link

SECONDS = "5"
NEAR_DEVICE = "sj-near"
"""Device of the namespace behind a link."""

BLOATED = (("8mbit", "droptail(limit=150kB)"), ("24mbit", "droptail(limit=450kB)"))
"""Rates and buffers of the line before, up and down: 150 ms in each direction."""

ATTEMPTS = 3
"""Attempts on a machine that does other work and cannot keep up."""


def options(up: tuple[str, str], down: tuple[str, str]) -> list[str]:
    """Return the options of a link with a rate and a discipline in each direction."""
    words = ["--rate", up[0], "--delay", "5ms", "--qdisc", up[1]]
    return [*words, *("--down", f"rate={down[0]}", "--down", "delay=5ms"),
            *("--down", f"qdisc={down[1]}")]  # fmt: skip


def command(*words: object) -> list[str]:
    """Return the command line of sojourn."""
    return [sys.executable, "-m", "sojourn", *map(str, words)]


def measured(line: list[str], folder: Path, *more: object, before: str = ":") -> str:
    """Measure a line after the shell commands `before`; return the standard error output."""
    words = command("line", "measure", "--to", FAR, "--seconds", SECONDS, "--keep", folder, *more)
    done = link(line, ["sh", "-c", f'{before} && exec "$@"', "sh", *words])
    assert done.returncode == 0 or "not installed" in done.stderr, done.stderr
    return done.stderr


def recommended(line: Path) -> str:
    """Return the commands that `sojourn recommend` prints for a measured line."""
    words = command(
        *("recommend", "--line", line, "--only", "fq_codel"),
        *("--dev", NEAR_DEVICE, "--format", "shell"),
    )
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def played(script: str) -> list[str]:
    """Return the options of a link with the rates and disciplines of the commands."""
    words = []
    for dev in (NEAR_DEVICE, f"sj-{NEAR_DEVICE}"):
        rate = re.search(rf"^tc class add dev {dev} .* rate (\w+)", script, re.MULTILINE)
        leaf = re.search(rf"^tc qdisc add dev {dev} parent 1:1 \S+ \S+ (.*)", script, re.MULTILINE)
        assert rate is not None
        assert leaf is not None
        words.append((rate[1], f"tc: {leaf[1]}"))
    return options(*words)


def walked(folder: Path) -> tuple[str, str]:
    """Go the whole way; return the grades before and after, and how it was installed."""
    measured(options(*BLOATED), folder / "before", "--out", folder / "line.toml")
    script = recommended(folder / "line.toml")
    (folder / "install.sh").write_text(script)
    errors = measured(options(*BLOATED), folder / "after", before=f"sh {folder / 'install.sh'}")
    how = "in the kernel"
    if "not installed" in errors:
        assert not (folder / "after").exists()
        how = "in sojourn link"
        measured(played(script), folder / "after")
    before, after = (sj.line.measure(folder / name) for name in ("before", "after"))
    return f"{before.grade()} {after.grade()}", how


@pytest.mark.live("iperf3", "ping")
def test_a_bloated_line_is_measured_mended_and_verified(tmp_path: Path, sojourn: Command) -> None:
    """The grade rises from C or D to A or A+, and `line verify` says that the promise held."""
    server = subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL)
    try:
        for attempt in range(ATTEMPTS):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            grades, how = walked(folder)
            print(f"installed {how}, grades {grades}")
            code, out, err = sojourn(
                "line", "verify", "--before", folder / "before", "--after", folder / "after",
                "--plot", folder / "change.png",
            )  # fmt: skip
            if code == 0 and grades in ("C A", "C A+", "D A", "D A+"):
                assert "all of it holds" in out
                assert (folder / "change.png").stat().st_size > 10_000
                return
        pytest.fail(f"installed {how}, grades {grades}\n{out}{err}")
    finally:
        server.kill()
        server.wait()
