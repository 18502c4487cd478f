"""Tables say on how many runs a value stands; unfinished transfers are counted."""

import csv
import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn import metrics
from sojourn.result.estimate import Estimate, difference_of, mean_of

FEW = """\
name = "few"
duration = "2s"

[links.l]
rate = "1mbit"
qdisc = "droptail(limit=300kB)"

[[flows]]
name = "big"
count = 2
path = ["l"]
rtt = "20ms"

[[flows]]
name = "s"
path = ["l"]
rtt = "20ms"
source = { name = "transfers", size = "60kB", start = "uniform(0s, 1.9s)" }
"""
"""In most runs the transfer does not finish: a filled buffer takes 2.4 s to empty."""

COLUMN = "s.fct_mean"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scenario, and a comparison over 20 seeds in `out`."""
    place = tmp_path_factory.mktemp("few")
    (place / "few.toml").write_text(FEW)
    sj.compare(place / "few.toml", ["droptail", "codel"], seeds=20, out=place / "out")
    return place


def known(folder: Path) -> dict[str, list[float]]:
    """Return the mean completion times of the runs that have one, by discipline."""
    runs = sj.load_comparison(folder / "out")
    means = {name: [metrics.afct_s(one, "s") for one in results] for name, results in runs.items()}
    return {name: [one for one in values if one is not None] for name, values in means.items()}


def test_an_estimate_says_what_it_lacks() -> None:
    """No interval from one value; no value from none; pairs need both values."""
    assert mean_of([1.0, 2.0, 3.0]).notes == []
    one = mean_of([1646.0, None, None])
    assert (one.value, one.low, one.high, one.text()) == (1646.0, None, None, "1646 (1 of 3 runs)")
    assert mean_of([None, None]).text() == "- (0 of 2 runs)"
    assert mean_of([1.0, None, 3.0, 5.0]).text() == "3.0 ± 5.0 (3 of 4 runs)"
    assert mean_of([1.5]).text() == "1.5"
    both = difference_of([1.0, 2.0, None, 4.0], [0.0, None, None, 1.0])
    assert (both.value, both.runs, both.asked, both.noun) == (2.0, 2, 4, "pair")
    assert difference_of([1.0, None], [None, 1.0]).text() == "- (0 of 2 pairs)"
    skewed = Estimate(3.0, 2.0, 7.0, 5, 6)
    assert skewed.text() == "3.0 (2 to 7, 5 of 6 runs)"


def test_results_count_the_runs_of_every_cell(folder: Path, sojourn: Command) -> None:
    """Table, JSON, CSV, LaTeX and pivot agree with the runs themselves."""
    counts = {name: len(values) for name, values in known(folder).items()}
    assert counts["droptail"] < 20  # otherwise the test tests nothing
    note = f"({counts['droptail']} of 20 runs)"
    show = ("results", str(folder / "out"), "--metric", COLUMN, "--metric", "utilisation")
    _, out, _ = sojourn(*show)
    line = next(line for line in out.splitlines() if line.startswith("droptail"))
    assert note in line
    assert line.count("of 20 runs") == 1  # utilisation has all values
    _, out, _ = sojourn(*show, "--json")
    rows = {row["qdisc"]: row for row in json.loads(out)["table"]}
    assert {name: row["s.fct_mean_s_runs"] for name, row in rows.items()} == counts
    assert rows["droptail"]["utilisation_runs"] == rows["droptail"]["runs"] == 20
    table = folder / "table"
    sojourn(*show, "--export", f"{table}.csv")
    with table.with_suffix(".csv").open() as file:
        assert {
            row["qdisc"]: int(row["s.fct_mean_s_runs"]) for row in csv.DictReader(file)
        } == counts
    sojourn(*show, "--export", f"{table}.tex")
    assert note in Path(f"{table}.tex").read_text()
    _, out, _ = sojourn("results", str(folder / "out"), "--metric", COLUMN, "--pivot", "qdisc")
    assert note in out


def test_pairs_without_values_are_no_difference(folder: Path, sojourn: Command) -> None:
    """The number of pairs with both values; none gives no difference, not a difference of 0."""
    rows = sj.results(folder / "out").select("qdisc", "seed", "s.fct_mean_s")
    wide = rows.pivot("qdisc", index="seed", values="s.fct_mean_s").drop_nulls()
    pair = ("results", str(folder / "out"), "--metric", COLUMN, "--pair", "qdisc=droptail")
    _, out, _ = sojourn(*pair, "--json")
    (row,) = json.loads(out)["table"]
    assert (row["pairs"], row["s.fct_mean_s_pairs"]) == (20, len(wide))
    _, out, _ = sojourn(*pair)
    assert f"({len(wide)} of 20 pairs)" in out
    # No seed of codel has a partner.
    case = sj.load(folder / "few.toml")
    sj.sweep(case, {"l.qdisc": ["droptail"]}, seeds=[1, 2], out=folder / "apart")
    sj.sweep(case, {"l.qdisc": ["codel"]}, seeds=[3, 4], out=folder / "apart")
    _, out, _ = sojourn("results", str(folder / "apart"), "--pair", "l.qdisc=droptail")
    assert out.splitlines()[-1].count("- (0 of 2 pairs)") == 3


def test_a_comparison_counts_runs_and_unfinished_transfers(folder: Path, sojourn: Command) -> None:
    """In the table, in HTML, in LaTeX and in JSON."""
    counts = {name: len(values) for name, values in known(folder).items()}
    note = f"({counts['droptail']} of 20 runs)"
    command = ("compare", str(folder / "few.toml"), "--qdisc", "droptail,codel", "--seeds", "20",
               "--out", str(folder / "out"))  # fmt: skip
    _, out, _ = sojourn(*command, "--export", str(folder / "compared.tex"))
    (mean,) = [line for line in out.splitlines() if "completion time, mean" in line]
    assert note in mean
    assert "unfinished transfers" in out
    assert note in (folder / "compared.tex").read_text()
    runs = sj.load_comparison(folder / "out")
    assert note in (runs._repr_html_() or "")
    _, out, _ = sojourn(*command, "--json")
    table = {(row["of"], row["what"]): row["estimates"] for row in json.loads(out)["table"]}
    cell = table["s", "completion time, mean"]["droptail"]
    assert (cell["runs"], cell["asked"]) == (counts["droptail"], 20)
    left = [metrics.unfinished_transfers(one, "s") for one in runs["droptail"]]
    assert sum(left) > 0
    assert table["s", "unfinished transfers"]["droptail"]["value"] == sum(left) / 20


def test_a_run_counts_unfinished_transfers(folder: Path, sojourn: Command) -> None:
    """Every transfer that started is finished or not; none started counts as none."""
    case = sj.load(folder / "few.toml")
    for seed in range(1, 21):
        result = sj.simulate(case.replace(seed=seed))
        started = result.flows["s"].sent_packets > 0
        finished = result.flows["s"].completed
        assert metrics.unfinished_transfers(result, "s") in ((0, 1) if finished else (started,))
        assert metrics.unfinished_transfers(result, "big") == 0
        if not finished:
            break
    _, out, _ = sojourn("run", str(folder / "few.toml"), "--seed", str(seed))
    assert "none completed, 1 unfinished" in out
    assert sj.results(folder / "out")["s.unfinished"].sum() > 0


def test_a_comparison_without_unfinished_transfers_has_no_row_of_them(
    folder: Path, sojourn: Command
) -> None:
    """A single transfer of a fast link is finished."""
    settings = ("--set", "l.rate=100mbit", "--set", "s.source.number=1", "--set", "big.count=1")
    _, out, _ = sojourn("compare", str(folder / "few.toml"), "--qdisc", "droptail,codel", *settings)
    assert "completed transfers" in out
    assert "unfinished" not in out


def test_a_column_of_text_has_no_mean(folder: Path, sojourn: Command) -> None:
    """One line, not a traceback."""
    code, _, err = sojourn("results", str(folder / "out"), "--metric", "qdisc", "--by", "qdisc")
    assert code == 2
    assert '--metric: "qdisc" is not a column of numbers' in err
