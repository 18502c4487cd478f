"""Shards of a sweep: each run in one of them, and the same table from their folders."""

import shutil
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.sweeps.results import results
from sojourn.sweeps.shards import Collected, Shard, collect, read_shard
from sojourn.sweeps.store import Store
from support.sweep_cases import AXES, CASE, called, csv, described, failed_seeds, failing, ran


@pytest.mark.parametrize("length", [0, 1, 5, 30, 31])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_every_place_is_in_one_shard(length: int, count: int) -> None:
    """Sizes differ by at most one."""
    parts = [Shard(number, count).part(length) for number in range(1, count + 1)]
    assert sorted(n for part in parts for n in part) == list(range(length))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_shards_have_the_runs_of_the_sweep(tmp_path: Path) -> None:
    """Their folders give the table of the whole sweep; the sweep then has nothing to run."""
    folder = described(tmp_path)
    sweep = folder / "sweep.toml"
    whole = called("sweep", sweep, "--out", folder / "whole")
    assert whole.returncode == 0
    for n in (1, 2, 3):
        done = called("sweep", sweep, "--out", folder / f"part-{n}", "--shard", f"{n}/3")
        assert "10 of 10 runs made" in done.stdout
    parts = [folder / f"part-{n}" for n in (3, 1, 2)]
    for _ in range(2):  # again: nothing new
        done = called("sweep", "collect", *parts, "--out", folder / "all")
        assert done.stdout == (f"{folder}/all: 30 runs; sojourn results {folder}/all shows them\n")
    assert csv(folder / "all") == csv(folder / "whole")
    assert len(list((folder / "all").glob("*.parquet"))) == 1
    assert results(folder / "all").equals(results(folder / "whole"))
    again = called("sweep", sweep, "--out", folder / "all")
    assert "0 of 30 runs made" in again.stdout


def test_shards_may_share_a_folder_and_overlap(tmp_path: Path) -> None:
    """A run that several folders have counts once; a missing shard is made by the sweep."""
    one = sj.sweep(CASE, AXES, seeds=3, out=tmp_path / "a", shard="1/2")
    both = sj.sweep(CASE, AXES, seeds=3, out=tmp_path / "a", shard="2/2")
    assert len(one) == len(both) == 6
    sj.sweep(CASE, AXES, seeds=2, out=tmp_path / "b", shard="1/3")
    assert collect([tmp_path / "a", tmp_path / "b"], tmp_path / "a") == Collected(12, 0)
    whole = sj.sweep(CASE, AXES, seeds=3)
    assert (
        results(tmp_path / "a")["sojourn_p99_s"].to_list()
        == (
            whole.sort("qdisc", "bulk.count", "seed", descending=[True, False, False])[
                "sojourn_p99_s"
            ]
        ).to_list()
    )


def test_a_shard_of_a_stopping_rule_has_whole_points(tmp_path: Path) -> None:
    """The seeds of a point depend on its earlier ones."""
    rule = {"metrics": ["sojourn_p99_s"], "relative": 0.5, "least": 20, "most": 21}
    parts = [
        sj.sweep(CASE, AXES, until=rule, out=tmp_path / str(n), shard=f"{n}/3") for n in (1, 2, 3)
    ]
    points = [len(part.unique(["qdisc", "bulk.count"])) for part in parts]
    assert points == [2, 1, 1]
    assert collect([tmp_path / str(n) for n in (1, 2, 3)], tmp_path / "all").runs >= 80


def test_failed_runs_are_collected_and_repeated(tmp_path: Path) -> None:
    """They are listed as by the sweep, which repeats them."""
    sweep = failing(tmp_path)
    for n in (1, 2):
        done = ran("sweep", sweep, "--out", tmp_path / str(n), "--shard", f"{n}/2", "--trust")
        assert done.returncode == 1
    done = ran("sweep", "collect", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "all")
    ran("sweep", sweep, "--out", tmp_path / "whole", "--trust")
    lost = failed_seeds(tmp_path / "whole")
    assert failed_seeds(tmp_path / "all") == lost
    assert f"{24 - len(lost)} runs, {len(lost)} failed" in done.stdout
    (tmp_path / "fails").unlink()
    again = ran("sweep", sweep, "--out", tmp_path / "all", "--trust")
    assert f"{len(lost)} of 24 runs made" in again.stdout


def test_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Another scenario, other contents, nothing, or another result of the same run."""
    folder = described(tmp_path)
    a, b, empty = folder / "a", folder / "b", folder / "empty"
    sj.sweep(CASE, AXES, out=a)
    sj.sweep({**CASE, "duration": "3s"}, AXES, out=b)
    empty.mkdir()
    forged = folder / "forged"
    shutil.copytree(a, forged)
    store = Store(forged)
    rows = store.rows()
    store.clear()
    store.put_frame(rows.with_columns(pl.col("sojourn_p99_s") + 1.0))
    shutil.copy(next(a.glob("_sweep-*.json")), forged)
    cases = [
        ([a, b], f"{b}: its scenario is not the one of {a} (duration is 2s there, 3s here)"),
        ([a, empty], f"{empty}: has no runs of a sweep"),
        ([a, folder / "none"], f"{folder}/none: no such directory"),
        ([a, forged], 'qdisc = "codel", bulk.count = 1, seed 1: two folders have different'),
        ([], "collect: requires folders"),
    ]
    for sources, message in cases:
        done = called("sweep", "collect", *sources, "--out", folder / "all")
        assert done.returncode == 2
        assert done.stderr.startswith(f"sojourn: {message}"), done.stderr
        assert done.stderr.count("\n") == 1
        assert not (folder / "all").exists() or not list((folder / "all").glob("*.parquet"))
    done = called("sweep", "collect", a, "--out", b)
    assert "holds the runs of a sweep of another scenario" in done.stderr
    assert called("sweep", "collect", a, "--out", b, "--force").returncode == 0
    assert csv(b) == csv(a)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "3", "a/b", "1/2/3", " 1/2", "-1/2"])
def test_a_shard_that_does_not_exist_is_refused(text: str, tmp_path: Path) -> None:
    """In one line that names the option."""
    with pytest.raises(sj.InputError, match=r"^shard: "):
        read_shard(text)
    folder = described(tmp_path)
    done = called("sweep", folder / "sweep.toml", "--out", folder / "x", f"--shard={text}")
    assert done.returncode == 2
    assert done.stderr.startswith("sojourn: --shard: ")
    assert done.stderr.count("\n") == 1


def test_more_shards_than_runs(tmp_path: Path) -> None:
    """A job of an array without runs ends well."""
    folder = described(tmp_path)
    sweep = folder / "sweep.toml"
    done = called("sweep", sweep, "--out", folder / "x", "--shard", "31/31")
    assert (done.returncode, done.stdout) == (0, "shard 31/31 has no runs of this sweep\n")
    done = called("sweep", sweep, sweep, "--out", folder / "x")
    assert "unexpected argument" in done.stderr
