"""`sojourn paper check`, checksums, data behind figures and times, of a paper with four runs."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from conftest import Command
from sojourn import InputError
from sojourn.plotting.run import new_figure
from sojourn.result.result import Result
from sojourn_lab import papers
from sojourn_lab.reproduction import check, checksums, costs, figure_data, paper, report, theirs
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Paper, figure
from sojourn_lab.reproduction.parts import Part, number
from sojourn_lab.reproduction.run import run

TITLE, REFERENCE = "An example", "nobody"


def scenario(ftps: int) -> dict[str, Any]:
    """Return FTPs over a link."""
    flow = {"name": "ftp", "count": ftps, "path": ["link"], "rtt": "uniform(10ms, 20ms)"}
    return {"duration": "2s", "links": {"link": {"rate": "5mbit"}}, "flows": [flow]}


def measure(result: Result) -> dict[str, Any]:
    """Keep the utilisation, the drops, and a value that some runs lack."""
    link = result.links["link"]
    drops = link.dropped_packets
    return {"used": link.utilisation, "drops": drops, "rare": drops or None}


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return two points, with four seeds in full mode."""
    points = [({"ftps": n}, scenario(n)) for n in (1, 20)]
    return {"load": Experiment(points, measure, 4 if full else 2)}


def _used(runs: Runs) -> list[Part]:
    return [number(f"{n} FTPs", values(runs["load"], "used", ftps=n), 1.0) for n in (1, 20)]


CLAIMS = [
    Claim("9-C1", "Used.", "1", "1", "Within 20 %.", _used, ["load"]),
    Claim("9-C2", "Used, too.", "", "1", "Within 20 %.", _used, ["load"]),
]


@figure("1", "Utilisation", needs=["load"])
def drawn(runs: Runs, ax: Axes) -> None:
    """Draw a line and a number of the paper."""
    means = [float(values(runs["load"], "used", ftps=n).mean()) for n in (1, 20)]
    ax.errorbar([1, 20], means, yerr=[0.1, 0.2], label="ours", color="#0072b2")
    theirs.points(ax, [20], [1.0], 0)


EXAMPLE = Paper("example", sys.modules[__name__])


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of pages with the page of the example, as `make papers-full` writes it."""
    pages = tmp_path_factory.mktemp("pages")
    outcome = run(EXAMPLE, full=True, store=pages / "example/runs")
    report.write_report(outcome, pages / "example")
    return pages


def changed(pages: Path, to: Path, name: str, change: Callable[[str], str]) -> Path:
    """Return a copy of the pages with another text in one file."""
    folder = to / "example"
    (folder / "data").mkdir(parents=True)
    for one in ("claims.json", "checksums.txt", "data/figure-1.csv"):
        text = (pages / "example" / one).read_text()
        new = change(text) if one == name else text
        assert (new != text) == (one == name)
        (folder / one).write_text(new)
    return to


def test_new_runs_have_the_digits_of_the_page(committed: Path) -> None:
    """Claims, data of figures and checksums of runs are compared; nothing differs."""
    result = check.full(EXAMPLE, pages=committed)
    assert list(result.results) == ["9-C1", "9-C2", "figure 1", "checksums of 8 runs"]
    assert (result.runs, result.differences) == (8, {})
    some = check.full(EXAMPLE, pages=committed, claims=["9-C2"])
    assert list(some.results) == ["9-C2", "checksums of 8 runs"]
    assert some.repeat == "sojourn paper check example --claim 9-C2"
    some = check.full(EXAMPLE, pages=committed, figures=["1"])
    assert list(some.results) == ["9-C1", "figure 1", "checksums of 8 runs"]


def mean_of_first(text: str) -> str:
    """Change the eleventh digit of a mean."""
    tree = json.loads(text)
    tree["claims"][0]["parts"][1]["mean"] *= 1 + 1e-10
    return json.dumps(tree)


def verdict_of_first(text: str) -> str:
    """Change a verdict."""
    tree = json.loads(text)
    tree["claims"][0]["verdict"] = "depends on nothing"
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("name", "change", "differs", "message"),
    [
        ("claims.json", mean_of_first, "9-C1", "20 FTPs: "),
        ("claims.json", verdict_of_first, "9-C1", "depends on nothing on the page, "),
        (
            "checksums.txt",
            lambda text: text.replace(text.split()[-1], "0" * 16),
            "load, ftps = 20, seed 4",
            "0" * 16 + " on the page, ",
        ),
        ("data/figure-1.csv", lambda text: text.replace("20,1,", "20,2,"), "figure 1", "line 4: "),
    ],
)
def test_a_changed_page_differs(
    name: str,
    change: Callable[[str], str],
    differs: str,
    message: str,
    committed: Path,
    tmp_path: Path,
) -> None:
    """Each kind of difference is found, and is named with both values."""
    pages = changed(committed, tmp_path, name, change)
    result = check.full(EXAMPLE, pages=pages, store=committed / "example/runs")
    assert list(result.differences) == [differs]
    assert result.differences[differs].startswith(message)


def test_a_sample_compares_checksums(committed: Path, tmp_path: Path) -> None:
    """The same draw chooses the same runs; a wrong checksum, and a missing run, are found."""
    result = check.sample(EXAMPLE, 3, pages=committed, draw=7)
    assert (result.runs, len(result.results), result.differences) == (3, 3, {})
    again = check.sample(EXAMPLE, 3, pages=committed, draw=7)
    assert list(again.results) == list(result.results)
    assert len(check.sample(EXAMPLE, 50, pages=committed).results) == 8

    def lack(text: str) -> str:
        first, second = text.splitlines()
        return first.replace(first.split()[-1], "f" * 16) + "\n" + second.rpartition(" ")[0]

    pages = changed(committed, tmp_path, "checksums.txt", lack)
    differences = check.sample(EXAMPLE, 50, pages=pages).differences
    assert differences["load, ftps = 20, seed 4"] == "not in checksums.txt"
    assert differences["load, ftps = 1, seed 4"].startswith("f" * 16)


def test_a_checksum_is_the_same_after_a_store() -> None:
    """Whole numbers become doubles in a store, and missing values null."""
    fresh = {"measured": '["a", "b"]', "a": 3, "b": None}
    stored = {"measured": '["a", "b"]', "a": 3.0 * (1 + 2**-52), "b": float("nan")}
    assert checksums.checksum(fresh) == checksums.checksum(stored)
    assert checksums.checksum(fresh) != checksums.checksum({**fresh, "a": 3 + 1e-10})


@pytest.mark.parametrize("name", papers.ids())
def test_every_run_has_its_own_place(name: str) -> None:
    """No two runs of an experiment have the same labels and seed; seeds are 1 to n."""
    for key, one in papers.find(name).experiments(True).items():
        runs = one.runs()
        places = checksums.places({key: runs})
        assert len(places) == len(runs)
        assert {place.seed for place in places} == set(range(1, one.seeds + 1))


def test_without_pages_one_line_says_where_it_works(tmp_path: Path, sojourn: Command) -> None:
    """A wheel has no pages; the option --pages names a copy."""
    code, out, err = sojourn("paper", "check", "hred", "--sample", "1", "--pages", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no committed page of hred; check works in a clone" in err
    (tmp_path / "hred").mkdir()
    (tmp_path / "hred/claims.json").write_text("[]")
    assert "is not the claims.json of a page" in sojourn(
        "paper", "check", "hred", "--pages", tmp_path
    )[2]  # fmt: skip
    with pytest.raises(InputError, match="line 1 is not an experiment"):
        checksums.load(tmp_path / "hred/claims.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--claim", "003-C99"], "--claim: no claim \"003-C99\""),
        (["--sample", "3", "--claim", "003-C1"], "--sample: not together with --claim"),
        (["--draw", "3"], "--draw: only with --sample"),
        (["--figure", "7"], "--figure: name the paper"),
        (["hred", "--figure", "99"], "--figure: no figure \"99\" in hred"),
        (["hred", "--claim", "004-C1"], "--claim: no claim \"004-C1\""),
        (["hredd"], "unknown paper \"hredd\", did you mean \"hred\""),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line(words: list[str], message: str, sojourn: Command) -> None:
    """The exit code is 2."""
    code, _, err = sojourn("paper", "check", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_data_behind_a_figure_is_what_is_drawn(committed: Path) -> None:
    """A line with its interval, and the paper's number, named after the line of its colour."""
    rows = (committed / "example/data/figure-1.csv").read_text().splitlines()
    assert rows[0] == "series,x,y,low,high"
    series, x, y, low, high = rows[1].split(",")
    assert (series, x) == ("ours", "1")
    assert float(high) - float(low) == pytest.approx(0.2, abs=1e-5)
    assert float(y) == pytest.approx((float(low) + float(high)) / 2, abs=1e-5)
    assert rows[3] == "paper: ours,20,1,,"
    assert len(rows) == 4
    assert "[Numbers](data/figure-1.csv)" in (committed / "example/report.md").read_text()


def test_data_of_other_drawings() -> None:
    """Bars at names, ranges, levels, bands, and long lines."""
    ax = new_figure(4, 3).subplots()
    ax.bar([0.1, 1.1], [3, 4], 0.2, bottom=[1, 0], label="range")
    ax.set_xticks([0, 1], ["slow", "fast"])
    theirs.level(ax, 0.5)
    theirs.band(ax, 2, 3, "stated")
    ax.plot(range(5000), [7] + [0] * 4998 + [9], label="long")
    text = figure_data.as_csv([ax]).splitlines()[1:]
    assert text[:2] == ["range,slow,,1,4", "range,fast,4,,"]
    assert "paper,,0.5,," in text
    assert "stated,,,2,3" in text
    long = [line for line in text if line.startswith("long,")]
    assert 100 < len(long) <= 2 * figure_data.BINS + 2
    assert "long,4999,9,," in long


def test_times_are_measured_and_kept(committed: Path) -> None:
    """Each run has a time; a second call takes the times of stored runs; quick is half of full."""
    tree = json.loads((committed / "example/claims.json").read_text())
    assert 0 < tree["core_s"]["load"] < 60
    again = run(EXAMPLE, full=True, store=committed / "example/runs")
    assert again.campaign.executed == 0
    assert again.core_s == tree["core_s"]
    times = costs.expected(EXAMPLE, {"load": 10.0})
    assert times == {"1": costs.Times(5.0, 10.0)}


def test_the_list_has_the_times(monkeypatch: pytest.MonkeyPatch, sojourn: Command) -> None:
    """`sojourn paper list ID` has the expected time of each figure, experiments and constants."""
    monkeypatch.setattr("sojourn_lab.reproduction.listing.measured_times", lambda _: {"mtu": 120.0})
    tree = json.loads(sojourn("paper", "list", "codel-vs-drr", "--json")[1])
    each = {one["number"]: one for one in tree["figures"]}
    assert each["4.4"]["core_s"] == 120
    assert each["4.4"]["quick_core_s"] == pytest.approx(36, abs=0.1)
    assert each["network"]["core_s"] is None
    assert {"name": "mtu", "runs": 60, "quick_runs": 18} in tree["experiments"]
    assert "rtt" in {one["name"] for one in tree["constants"]}
    text = sojourn("paper", "list", "codel-vs-drr")[1]
    assert "2 min" in text
    assert "--set CONSTANT=VALUE" in text


def test_claims_of_a_run(tmp_path: Path) -> None:
    """`claims` selects claims, and the figures of the others are not drawn."""
    outcome = run(EXAMPLE, full=False, store=tmp_path, claims=["9-C2"])
    assert [one.claim.id for one in outcome.claims] == ["9-C2"]
    assert outcome.figures == []
    assert paper.claims_in_part(EXAMPLE, []) == []
