"""Tables fit the terminal at every width, split no word, and show significant digits."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import sojourn as sj
from conftest import EXAMPLES, Command
from sojourn._util.units import figures, with_half
from sojourn.display.table import Table
from sojourn.live import summary as live_summary
from sojourn.live.link import LinkRun
from sojourn.metrics.overview import Reading, Row
from sojourn.result.statistics import half_width, separate
from sojourn.scenario.draft import Draft
from sojourn.sweeps.runner import CampaignResult
from sojourn_lab import papers
from sojourn_lab.reproduction import paper
from sojourn_lab.reproduction.judging import Judged
from sojourn_lab.reproduction.parts import Part
from sojourn_lab.reproduction.verdicts import print_verdicts

WIDTHS = (60, 80, 100, 140)
WIDE = 1000

LONG = """\
name = "two-way"
duration = "2s"
warmup = "500ms"

[links.up]
rate = "2mbit"
delay = "5ms"
qdisc = { name = "codel", limit = "100kB" }

[links.downstream-of-the-cable-modem]
rate = "20mbit"
delay = "5ms"

[[flows]]
name = "bulk"
count = 2
source = { name = "bulk" }
path = ["up"]
return_path = ["downstream-of-the-cable-modem"]
rtt = "30ms"

[[flows]]
name = "downloads-from-the-content-network"
source = { name = "transfers", size = "20kB", gap = "100ms" }
path = ["downstream-of-the-cable-modem"]
return_path = ["up"]
rtt = "30ms"

[[flows]]
name = "call"
source = { name = "cbr", rate = "64kbit", packet = "200B" }
path = ["up"]
rtt = "30ms"
"""
"""Both directions loaded, with short and long names."""

EVERY = "droptail,red,codel,fq_codel,pie,pi2,blue,cobalt,sfb,choke,fq_pie,drr"
"""Twelve disciplines."""

NAMES = {"name", "id", "parameter"}
"""Headers of columns that hold the names of records, which need no label."""

SWEEP = """\
scenario = "two-way.toml"
seeds = 2

[axes]
qdisc = { set = "up.qdisc", values = ["droptail", "codel"] }
bulk_flows = { set = "bulk.count", values = [1, 2, 3] }
"""


def words(text: str) -> set[str]:
    """Return the words of an output, without rules under headers and colons of labels."""
    return {word.rstrip(":") for word in text.split()} - {"─" * n for n in range(WIDE)}


def check_widths(tell: dict[int, str]) -> None:
    """Check for the same words at every width, and lines that fit."""
    whole = words(tell[WIDE])
    for width in WIDTHS:
        shown = words(tell[width])
        assert shown <= whole, f"at {width} columns"
        # Where records stand in place of a table, names have no header.
        assert whole - shown <= NAMES, f"at {width} columns"
        for line in tell[width].splitlines():
            assert cell_len(line.rstrip()) <= width, line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a scenario with long names, a sweep of it, and its results in `out`."""
    place = tmp_path_factory.mktemp("tables")
    (place / "two-way.toml").write_text(LONG)
    (place / "sweep.toml").write_text(SWEEP)
    sj.sweep(
        place / "two-way.toml",
        {"qdisc": {"set": "up.qdisc", "values": ["droptail", "codel"]}, "bulk.count": [1, 2]},
        seeds=2,
        out=place / "out",
    )
    return place


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "{}/two-way.toml"],
        ["run", "{}/two-way.toml", "--steady", "--set", "sample=1ms", "--set", "duration=10s"],
        ["compare", "{}/two-way.toml", "--link", "up", "--qdisc", EVERY],
        ["compare", "{}/two-way.toml", "--link", "up", "--qdisc", "red,codel", "--seeds", "3"],
        ["results", "{}/out"],
        ["results", "{}/out", "--metric", "downloads-from-the-content-network.fct_mean"],
        ["results", "{}/out", "--pivot", "bulk.count"],
        ["results", "{}/out", "--pair", "qdisc=droptail"],
        ["results", "{}/out", "--rows", "--metric", "sojourn_p99", "--metric", "utilisation"],
        ["results", "{}/out", "--percentile", "90"],
        ["list"],
        ["list", "disciplines"],
        ["list", "metrics"],
        ["list", "sources"],
        ["list", "missing"],
        ["list", "codel"],
        ["list", "web"],
        ["paper", "list"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]).replace("{}/", "")[:40],
)
def test_no_command_splits_a_word(
    arguments: list[str], folder: Path, sojourn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 60, 80, 100 and 140 columns, with twelve disciplines and names of 34 letters."""
    outputs = {}
    for width in (*WIDTHS, WIDE):
        monkeypatch.setenv("COLUMNS", str(width))
        code, outputs[width], err = sojourn(*(part.format(folder) for part in arguments))
        assert (code, err) == (0, "")
    check_widths(outputs)


def test_a_paper_and_a_link_split_no_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The table of claims, and the summary at the end of `sojourn link`."""
    one = papers.find("hred")
    campaign = CampaignResult([], 0, 0, 0.0, ())
    parts = [Part("a", "b", "c", "holds")]
    judged = [Judged(claim, parts) for claim in one.claims]
    outcome = paper.Outcome(one, False, {}, [], judged, campaign)
    link = dict.fromkeys(
        ("sent_bps", "utilisation", "sojourn_mean_s", "sojourn_p50_s", "sojourn_p99_s"), 0.0001234
    )
    link |= {f"lateness_{name}_s": 1.5e-5 for name in ("p50", "p99", "max")}
    link |= dict.fromkeys(("late_share", "cpu_share"), 0.02)
    counts = ("arrived", "dropped", "lost_on_wire", "marked", "malformed")
    counted = {f"{name}_packets": 1234567 for name in counts}
    run = LinkRun(0, {"up": link | counted, "down": link | counted}, [], {})
    claims, links = {}, {}
    for width in (*WIDTHS, WIDE):
        monkeypatch.setenv("COLUMNS", str(width))
        print_verdicts(outcome, Path("out"))
        live_summary.finish(run)
        claims[width], links[width] = capsys.readouterr()
    check_widths(claims)
    check_widths(links)


def test_names_that_cannot_fit_lose_their_middle() -> None:
    """Both ends and all numbers stay; characters may be two columns wide."""
    table = Table("", "a", "b")
    table.add_row("a" * 100 + "end", "1234567.89 ± 0.12", "2")
    table.add_row("网络" * 40, "1", "2")
    table.add_heading("h" * 100)
    table.add_row("x", "1", "2")
    lines = [line.plain for line in table.lines(40)]
    assert all(cell_len(line) <= 40 for line in lines)
    text = "\n".join(lines)
    assert "aend" in text
    assert "aaa…aaa" in text
    assert "网…" in text
    assert "1234567.89 ± 0.12" in text


def test_cells_are_literal_and_may_have_a_style() -> None:
    """Brackets in a name are not markup."""
    table = Table("name", "value")
    table.add_row("[bold]x[/]", Text("1*", "bold"))
    with Console(width=40, file=sys.stdout) as console, console.capture() as capture:
        console.print(table)
    assert capture.get().splitlines() == ["name        value", "─" * 17, "[bold]x[/]     1*"]


def test_a_pipe_has_room_and_a_terminal_has_its_width(
    sojourn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COLUMNS counts if it is a number."""
    for value, least, most in (("70", 0, 70), ("wide", 100, 200), ("", 100, 200)):
        monkeypatch.setenv("COLUMNS", value)
        _, out, _ = sojourn("list", "disciplines")
        assert least <= max(len(line) for line in out.splitlines()) <= most


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.598, 1.1e-16, "0.598"),
        (0.598, 0.0, "0.598"),
        (0.598, float("nan"), "0.598"),
        (407.123, 1.06, "407.1 ± 1.1"),
        (67.66, 6.45, "67.7 ± 6.5"),
        (28.4, 1.3, "28.4 ± 1.3"),
        (0.99998, 3.1e-5, "0.99998 ± 0.00003"),
        (0.99998, 3.1e-7, "1"),
        (1609.0, 1234.0, "1600 ± 1200"),
        (9.996, 0.00996, "9.996 ± 0.010"),
        (-0.00425, 0.000945, "-0.00425 ± 0.00094"),
        (0.0, 0.05, "0.000 ± 0.050"),
        (1.2e-7, 3e-9, "1.200e-07 ± 3.0e-09"),
    ],
)
def test_digits_follow_the_interval(mean: float, half: float, text: str) -> None:
    """Two digits of the interval, the mean to the same place; rounding noise is not an interval."""
    assert with_half(mean, half) == text


def test_digits_of_random_intervals_are_true() -> None:
    """The printed number is right to its last place; mean and interval have as many places."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        mean = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-8, 8))
        half = float(abs(mean) * 10 ** rng.uniform(-8, 3))
        written, _, spread = with_half(mean, half).partition(" ± ")
        assert float(written) == pytest.approx(mean, abs=max(0.11 * half, 0.006 * abs(mean)))
        if spread:
            assert float(spread) == pytest.approx(half, rel=0.5)
            assert len(written.partition(".")[2].split("e")[0]) >= len(
                spread.partition(".")[2].split("e")[0]
            )
            assert len(re.sub(r"^0+|e.*", "", written.lstrip("-").replace(".", ""))) <= 9


def test_sums_of_equal_values_have_no_interval() -> None:
    """(0.1 + 0.1 + 0.1) / 3 is not 0.1 in floating point."""
    assert "±" not in with_half(0.598, half_width([0.598, 0.598 + 1e-16, 0.598 - 1e-16]), figures)


def row(*values: list[float], better: str = "less") -> Row:
    """Return a row of a comparison whose seeds count from 1."""
    like = Reading("x", "y", "ms", None, "less" if better == "less" else "more")
    readings = [[replace(like, value=value) for value in one] for one in values]
    return Row(like, tuple(dict(enumerate(one, 1)) for one in readings))


def test_stars_need_separate_intervals() -> None:
    """Paired if seeds are shared; one seed gives no rank."""
    assert row([1.0], [2.0]).best == [False, False]
    assert row([1.0, 1.1, 0.9], [2.0, 2.1, 2.2]).best == [True, False]
    assert row([1.0, 1.1, 0.9], [2.0, 2.1, 2.2], better="more").best == [False, True]
    # The values spread widely over seeds, the differences do not.
    assert row([1.0, 50.0, 100.0], [3.0, 52.1, 101.9]).best == [True, False]
    assert row([1.0, 50.0, 100.0], [30.0, 22.1, 101.9]).best == [False, False]
    # Not separated from the second is not best, whatever the third is.
    assert row([1.0, 2.0, 3.0], [2.0, 2.1, 2.2], [90.0, 91.0, 92.0]).best == [False] * 3
    # Equal ones share it, and what reads the same is equal.
    assert row([0.0, 0.0], [0.0, 0.0], [1.0, 1.1]).best == [True, True, False]
    assert row([99.991, 99.991], [99.99, 99.99], better="more").best == [False, False]
    assert row([], [1.0, 1.1]).best == [False, False]
    assert row([], []).best == [False, False]


def test_few_common_seeds_fall_back_to_two_intervals() -> None:
    """Seeds that are not shared cannot be paired."""
    low, high = {1: 1.0, 2: 1.1, 3: 0.9}, {4: 9.0, 5: 9.1, 6: 9.2}
    assert separate(low, high)
    assert separate(high, low)
    assert not separate(low, {4: 1.0, 5: 9.0})
    assert not separate({1: 1.0}, {1: 2.0})


def test_comparison_explains_its_stars(sojourn: Command) -> None:
    """With one seed it says that there is no rank."""
    file = EXAMPLES / "home-uplink.toml"
    command = ["compare", file, "--qdisc", "droptail,fq_codel", "--set", "duration=25s"]
    code, out, _ = sojourn(*command)
    assert code == 0
    assert "*" not in out
    assert "one seed cannot rank" in out
    code, out, _ = sojourn(*command, "--seeds", "3")
    assert code == 0
    [delay] = [line for line in out.splitlines() if "one-way delay" in line]
    assert re.search(r"(± \S+|\(\S+ to \S+\))\*$", delay)
    assert "* best of its row" in out


def test_one_discipline_is_not_ranked(small: Path, sojourn: Command) -> None:
    """A single discipline has no stars."""
    _, out, _ = sojourn("compare", small, "--qdisc", "red")
    assert "rank" not in out
    assert "best" not in out


def test_rates_of_identical_runs_are_not_starred(small: Path) -> None:
    """The same scenario under two names: nothing separates."""
    runs = sj.compare(Draft.read(small).set([]), ["codel"], seeds=3)
    both = {"one": runs["codel"], "two": runs["codel"]}
    from sojourn.metrics.overview import rows

    assert not any(any(row.best) for row in rows(both, "up"))
