"""`--out` and `save`: only results of the same scenario are overwritten."""

from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn.result.folders import difference
from sojourn.scenario.draft import Draft

SWEEP = """
scenario = "small.toml"
seeds = 2
[axes]
qdisc = { set = "up.qdisc", values = ["droptail", "codel"] }
"""


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file below `directory` with its bytes."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Return a folder with tables of another program, one under a name that a run writes."""
    folder = tmp_path / "data"
    folder.mkdir()
    pl.DataFrame({"url": ["https://example.org"]}).write_parquet(folder / "links.parquet")
    pl.DataFrame({"packet_log": [7]}).write_parquet(folder / "packet_log.parquet")
    (folder / "notes.txt").write_text("mine")
    return folder


@pytest.fixture
def sweep(small: Path) -> Path:
    """Return the file of a sweep over the small scenario."""
    path = small.with_name("sweep.toml")
    path.write_text(SWEEP)
    return path


COMMANDS = {
    "run": ["run", "SMALL"],
    "compare": ["compare", "SMALL", "--qdisc", "droptail,codel"],
    "sweep": ["sweep", "SWEEP"],
}


def command_line(name: str, small: Path, sweep: Path) -> list[str]:
    """Return the arguments of a command that takes --out DIR."""
    files = {"SMALL": str(small), "SWEEP": str(sweep)}
    return [files.get(word, word) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_foreign_files_are_refused_and_survive_force(
    name: str, small: Path, sweep: Path, foreign: Path, sojourn: Command
) -> None:
    """Refused before the run; with --force only the names of sojourn's files are overwritten."""
    before = contents(foreign)
    command = [*command_line(name, small, sweep), "--out", str(foreign)]
    code, out, err = sojourn(*command)
    assert (code, out) == (2, "")
    assert err.startswith(
        f"sojourn: {foreign}: holds links.parquet, notes.txt, packet_log.parquet, not"
    )
    assert "--force" in err
    assert contents(foreign) == before
    assert sojourn(*command, "--force")[0] == 0
    after = contents(foreign)
    replaced = {"links.parquet"} if name == "run" else set()
    assert {one for one in before if after.get(one) != before[one]} == replaced
    # Foreign files among the results now are no reason to refuse, but one under our name is.
    assert sojourn(*command)[0] == (2 if name == "run" else 0)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_scenario_may_be_repeated(
    name: str, small: Path, sweep: Path, tmp_path: Path, sojourn: Command
) -> None:
    """Also with a figure and notes added to the folder."""
    out = tmp_path / "results"
    command = [*command_line(name, small, sweep), "--out", str(out)]
    assert sojourn(*command)[::2] == (0, "")
    (out / "notes.txt").write_text("mine")
    assert sojourn(*command)[::2] == (0, "")
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", COMMANDS)
def test_results_of_another_scenario_need_force(
    name: str, small: Path, sweep: Path, tmp_path: Path, sojourn: Command
) -> None:
    """The message has the difference; with force, old tables are removed."""
    out = tmp_path / "results"
    command = [*command_line(name, small, sweep), "--out", str(out)]
    sojourn(*command)
    before = contents(out)
    text = small.read_text()
    small.write_text(text.replace('rate = "5mbit"', 'rate = "6mbit"'))
    code, _, err = sojourn(*command)
    assert code == 2
    assert "of another scenario (links.up.rate is 5mbit there, 6mbit here)" in err
    assert err.endswith("choose another folder, or add --force to replace it\n")
    assert contents(out) == before
    assert sojourn(*command, "--force")[0] == 0
    runs = {"run": 1, "compare": 2, "sweep": 4}[name]
    assert sj.results(out).height == runs
    small.write_text(text)
    assert sojourn(*command)[0] == 2


def test_a_folder_of_another_kind_is_refused(small: Path, tmp_path: Path, sojourn: Command) -> None:
    """A run does not overwrite a comparison, nor the reverse."""
    run, comparison = tmp_path / "run", tmp_path / "comparison"
    sojourn("run", small, "--out", run)
    sojourn("compare", small, "--qdisc", "red,codel", "--out", comparison)
    assert "holds a comparison;" in sojourn("run", small, "--out", comparison)[2]
    assert "holds a run;" in sojourn("compare", small, "--qdisc", "red", "--out", run)[2]


def test_another_seed_or_discipline_is_another_run(
    small: Path, tmp_path: Path, sojourn: Command
) -> None:
    """Recording options alone do not make another run."""
    out = tmp_path / "out"
    sojourn("run", small, "--out", out)
    assert sojourn("run", small, "--out", out, "--packet-log")[0] == 0
    assert "seed is 1 there, 2 here" in sojourn("run", small, "--out", out, "--seed", "2")[2]
    other = sojourn("run", small, "--out", out, "--qdisc", "pie")[2]
    assert "links.up.qdisc.name is codel there, pie here" in other


def test_a_wider_comparison_shares_the_folder(
    small: Path, tmp_path: Path, sojourn: Command
) -> None:
    """More disciplines and seeds may be added; a label keeps its discipline."""
    out = tmp_path / "out"
    assert sojourn("compare", small, "--qdisc", "a=red,codel", "--out", out)[0] == 0
    assert sojourn("compare", small, "--qdisc", "pie", "--seeds", "2", "--out", out)[0] == 0
    assert sj.results(out).select("qdisc", "seed").rows() == [
        ("a", 1),
        ("codel", 1),
        ("pie", 1),
        ("pie", 2),
    ]
    before = contents(out)
    err = sojourn("compare", small, "--qdisc", "a=pie", "--out", out)[2]
    assert "a-1: holds a run of another scenario (links.up.qdisc.name is red there" in err
    assert contents(out) == before


def test_python_saves_by_the_same_rules(small: Path, foreign: Path, tmp_path: Path) -> None:
    """`save` of a run and of a comparison, and `out` of a sweep, have the same rules."""
    result = sj.simulate(small)
    with pytest.raises(sj.InputError, match=r"holds links\.parquet, notes\.txt"):
        result.save(foreign)
    before = contents(foreign)
    result.save(foreign, force=True)
    # A name of ours that this run does not write: what is not ours stays.
    assert contents(foreign)["packet_log.parquet"] == before["packet_log.parquet"]
    assert sj.load_result(foreign).summary == result.summary
    (foreign / "packet_log.parquet").unlink()
    result.save(foreign)
    with pytest.raises(sj.InputError, match="of another scenario"):
        sj.simulate(Draft.read(small).set(["seed=2"])).save(foreign)

    runs = sj.compare(small, ["droptail", sj.CoDel(target="15ms")], seeds=2)
    runs.save(tmp_path / "runs")
    runs.save(tmp_path / "runs")
    back = sj.load_comparison(tmp_path / "runs")
    assert back.link == runs.link == "up"
    assert {label: [r.summary for r in results] for label, results in back.items()} == {
        label: [r.summary for r in results] for label, results in runs.items()
    }
    with pytest.raises(sj.InputError, match="holds a comparison"):
        result.save(tmp_path / "runs")


def test_the_store_leaves_foreign_tables_where_they_are(foreign: Path) -> None:
    """Reading a folder does not move files of other programs."""
    before = contents(foreign)
    with pytest.raises(sj.InputError, match="there are no results"):
        sj.results(foreign)
    assert contents(foreign) == before


def test_replay_keeps_its_input_and_foreign_files(tmp_path: Path, sojourn: Command) -> None:
    """Earlier output is replaced; the input never is, other files with --force."""
    arrivals, out = tmp_path / "in.csv", tmp_path / "out.csv"
    arrivals.write_text("i,t_us,flow,size_B\n0,0,0,1500\n1,10,0,1500\n")
    command = ["replay", arrivals, "--qdisc", "codel(target=15ms)", "--rate", "1mbit", "--out"]
    assert sojourn(*command, out)[0] == 0
    assert sojourn(*command, out)[0] == 0
    code, _, err = sojourn(*command, arrivals, "--force")
    assert (code, "this is the file of ARRIVALS" in err) == (2, True)
    out.write_text("name,address\n")
    code, _, err = sojourn(*command, out)
    assert (code, "not written by sojourn" in err) == (2, True)
    assert out.read_text() == "name,address\n"
    assert sojourn(*command, out, "--force")[0] == 0


def test_a_report_is_not_written_over_other_files(
    foreign: Path, tmp_path: Path, sojourn: Command
) -> None:
    """The folder of a paper is DIR/ID; an interrupted one has only its runs."""
    foreign.rename(tmp_path / "codel-vs-drr")
    code, _, err = sojourn("paper", "run", "codel-vs-drr", "--out", tmp_path)
    assert code == 2
    assert "codel-vs-drr: holds links.parquet, notes.txt, packet_log.parquet, not written" in err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        '{"scenario": 3}',
        '{"sojourn": 1, "scenario": 3, "links": 4, "link": 5, "variants": 6, "claims": 7}',
        '{"sojourn": 1, "scenario": {}, "links": {}, "link": "x", "variants": {}, "claims": []}',
    ],
)
@pytest.mark.parametrize(
    "marker", ["summary.json", "comparison.json", "claims.json", "_sweep-0.json"]
)
def test_a_foreign_marker_file_is_refused(
    marker: str, text: str, small: Path, tmp_path: Path, sojourn: Command
) -> None:
    """Every command that reads or writes a folder refuses it in one line."""
    out = tmp_path / "out"
    out.mkdir()
    (out / marker).write_text(text)
    before = contents(out)
    for command in (
        ["run", small, "--out", out],
        ["compare", small, "--qdisc", "red", "--out", out],
        ["results", out],
        ["plot", out, "--out", tmp_path / "x.png"],
        ["plot", out, "--y", "utilisation", "--out", tmp_path / "x.png"],
    ):
        code, _, err = sojourn(*command)
        assert (code, err.count("\n")) == (2, 1), err
        assert "fault in sojourn" not in err
    assert contents(out) == before


def test_differences_have_paths() -> None:
    """The name first, elements of lists by name, long values cut."""
    there = {"links": {"up": {"alpha": 1, "name": "pie"}}, "flows": [{"name": "a", "count": 1}]}
    here = {"links": {"up": {"name": "codel"}}, "flows": [{"name": "a", "count": 2}]}
    assert difference(there, here) == "links.up.name is pie there, codel here"
    assert difference({"flows": there["flows"]}, {"flows": here["flows"]}) == (
        "flows.a.count is 1 there, 2 here"
    )
    assert difference({"a": 1}, {"b": 1, "a": 1}) == "b is only here"
    assert difference({"a": [1]}, {"a": [1, 2]}) == "a is [1] there, [1, 2] here"
    assert difference({"a": "x" * 99}, {"a": "y"}) == f"a is {'x' * 40}... there, y here"
    assert difference(there, there) is None
