"""Several processes with one store share the runs; claims end with their process."""

import errno
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import sojourn as sj
from sojourn import _sojourn
from sojourn.sweeps import claims
from sojourn.sweeps.claims import MERGE, Claims
from sojourn.sweeps.runner import RUN_COLUMNS
from sojourn.sweeps.spec import make_sweep, run_sweep
from sojourn.sweeps.store import Store
from support.sweep_cases import AXES, CASE, command, csv, described, failed_seeds, failing, ran

KEYS = ["0" * 63 + "1", "a" * 64, "f" * 64]

HOLDER = """
import sys
from pathlib import Path
from sojourn.sweeps.claims import Claims
with Claims(Path(sys.argv[1])) as claims:
    print(*[int(claims.take(key)) for key in sys.argv[2:]], flush=True)
    sys.stdin.read()
"""


def holder(folder: Path, *keys: str) -> "subprocess.Popen[str]":
    """Start a process that claims `keys` until its input ends."""
    line = [sys.executable, "-c", HOLDER, str(folder), *keys]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_claim_excludes_other_processes_and_ends_with_its_own(tmp_path: Path) -> None:
    """After SIGKILL too; nothing has to be removed."""
    with Claims(tmp_path) as mine:
        assert mine.take(KEYS[0])
        assert mine.take(KEYS[0])
        with holder(tmp_path, *KEYS) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "0 1 1\n"
            assert [mine.take(key) for key in KEYS] == [True, False, False]
            other.kill()
            other.wait()
        assert [mine.take(key) for key in KEYS] == [True, True, True]
        mine.release(KEYS[:1])
        with holder(tmp_path, *KEYS) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "1 0 0\n"
            other.kill()
    assert (tmp_path / claims.NAME).stat().st_size == 0


def test_claims_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """Record locks alone would not; the end of one keeps the locks of the other."""
    with Claims(tmp_path) as one:
        assert one.take(KEYS[0])
        with Claims(tmp_path) as two:
            assert not two.take(KEYS[0])
            assert two.take(KEYS[1])
            assert not one.take(KEYS[1])
        assert one.take(KEYS[1])
        with holder(tmp_path, KEYS[0]) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "0\n"
            other.kill()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EINVAL])
def test_without_locks_every_claim_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """As on some network file systems."""

    def refuse(*_: Any) -> None:
        raise OSError(code, "no locks available")

    monkeypatch.setattr("fcntl.lockf", refuse)
    assert run_sweep(make_sweep(CASE, AXES), out=tmp_path).executed == 4
    with Claims(tmp_path / "nowhere") as impossible:
        assert impossible.take(KEYS[0])


def counted(out: Path) -> int:
    """Return the number of rows in all parts, with duplicates."""
    return sum(pl.read_parquet(part).height for part in out.glob("*.parquet"))


@pytest.mark.parametrize("options", [(), ("--processes", "--jobs", 1)])
def test_two_processes_execute_each_run_once(tmp_path: Path, options: tuple[Any, ...]) -> None:
    """The parts have each run once, and both commands show the whole table."""
    folder, out = described(tmp_path), tmp_path / "out"
    sweep = (folder / "sweep.toml").read_text().replace("seeds = 5", "seeds = 200")
    (folder / "sweep.toml").write_text(sweep)
    line = command("sweep", folder / "sweep.toml", "--out", out, "--json", *options)
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    summaries = [json.loads(one.communicate()[0]) for one in both]
    assert [one["runs"] for one in summaries] == [1200, 1200]
    assert sum(one["made"] for one in summaries) == 1200
    assert summaries[0]["table"] == summaries[1]["table"]
    assert counted(out) == 1200
    ran("sweep", folder / "sweep.toml", "--out", tmp_path / "alone")
    assert csv(out) == csv(tmp_path / "alone")


def test_the_runs_of_a_process_that_ends_are_taken_over(tmp_path: Path) -> None:
    """A sweep waits for the runs of the other one, and executes them after its death."""
    sweep = make_sweep(CASE, AXES, seeds=2)
    run_sweep(sweep, out=tmp_path / "whole")
    keys = Store(tmp_path / "whole").rows()["key"].to_list()
    out = tmp_path / "out"
    out.mkdir()
    with holder(out, *keys[:3]) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "1 1 1\n"
        threading.Timer(1.0, other.kill).start()
        campaign = run_sweep(sweep, out=out)
    assert campaign.executed == 8
    assert csv(out) == csv(tmp_path / "whole")


def test_failures_of_the_other_process_are_not_repeated(tmp_path: Path) -> None:
    """Both commands list them, and each run has been tried once.

    A third process holds all runs back until both have read the store; a later one would repeat.
    """
    file, out = failing(tmp_path, seeds=30), tmp_path / "out"
    ran("sweep", file, "--trust", "--out", tmp_path / "first")
    rows = [sj.results(tmp_path / "first", failed=failed) for failed in (False, True)]
    keys = [key for frame in rows for key in frame["key"]]
    assert len(set(keys)) == 60
    out.mkdir()
    line = command("sweep", file, "--trust", "--out", out, "--json")
    with holder(out, *keys) as third:
        assert third.stdout is not None
        assert "0" not in third.stdout.readline()
        both = [
            subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for _ in range(2)
        ]
        while not all(_claims_of(one.pid) for one in both):
            assert all(one.poll() is None for one in both)
            time.sleep(0.05)
        third.kill()
    summaries = [json.loads(one.communicate()[0]) for one in both]
    seeds = failed_seeds(out)
    assert seeds == sorted(rows[1]["seed"])
    assert sum(one["made"] for one in summaries) == 60 - len(seeds)
    assert [sorted(it["seed"] for it in one["failed"]) for one in summaries] == [seeds, seeds]
    assert set(sj.results(out, failed=True)["failure_attempt"]) == {1}


def _claims_of(pid: int) -> bool:
    """Return True if a process has the file of claims open."""
    try:
        files = [path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # a descriptor was closed meanwhile
        return False
    return claims.NAME in files


def test_only_one_process_merges(tmp_path: Path) -> None:
    """Two would write the rows of a part into two others."""
    for seed in range(3):
        Store(tmp_path).put([_row(seed)])
    with Claims(tmp_path) as other:
        assert other.take_place(MERGE)
        Store(tmp_path).tidy()
        assert len(list(tmp_path.glob("*.parquet"))) == 3
    Store(tmp_path).tidy()
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def _row(seed: int) -> dict[str, Any]:
    values = (f"{seed:064x}", "e", "[]", '["value"]', seed)
    return {**dict(zip(RUN_COLUMNS, values, strict=True)), "value": 0.5}


def test_the_documented_views_count_each_run_once(tmp_path: Path) -> None:
    """Not rows that are doubled, nor of other engines, nor of failed runs."""
    file, out = failing(tmp_path), tmp_path / "load"
    ran("sweep", file, "--trust", "--out", out)
    rows = Store(out).rows()
    good = rows.height
    assert good < 24
    # A kill while parts are merged leaves rows twice; an older version has left its own.
    Store(out).put(rows.head(5).to_dicts())
    Store(out).put(rows.with_columns(pl.lit("0.0.1+0").alias("engine")).to_dicts())
    assert counted(out) == 2 * good + 5
    export = ran("results", out, "--rows", "--export", tmp_path / "runs.parquet")
    assert export.returncode == 0, export.stderr
    mean = "avg(sojourn_p99_s), count(*)"
    of_file = _asked(f"select {mean} from '{tmp_path}/runs.parquet'")
    assert of_file[1] == good
    page = (Path(__file__).parent.parent / "docs/how-to/sweeps.md").read_text()
    view = page.split("```sql\n")[1].split("```")[0]
    view = view.replace("'load/", f"'{out}/").replace("ENGINE", _sojourn.engine())
    assert _asked(f"{view}\nselect {mean} from runs") == pytest.approx(of_file)
    runs = sj.results(out)
    assert of_file == pytest.approx((runs["sojourn_p99_s"].mean(), good))


def _asked(text: str) -> Any:
    """Return the first row of the last query of a text, in a database of its own."""
    with duckdb.connect() as database:
        return database.execute(text).fetchone()
