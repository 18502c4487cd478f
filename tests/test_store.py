"""The store: no row is lost, no partial row is read, damage is detected."""

import errno
import hashlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from sojourn import InputError, StoreWarning
from sojourn.sweeps.spec import make_sweep, run_sweep
from sojourn.sweeps.store import ASIDE, FEW, LOOSE, Store
from sojourn.sweeps.writer import RowWriter


def row(i: int, value: float | None = 0.5) -> dict[str, object]:
    """Return a row as campaigns have."""
    own = {"key": f"{i:04}", "engine": "e", "axes": "[]", "measured": '["value", "series"]'}
    return {**own, "seed": i, "value": value, "series": [1.0, float(i)]}


def test_rows_do_not_depend_on_the_order_of_writing(tmp_path: Path) -> None:
    """The same rows give the same table."""
    for name, order in (("a", range(10)), ("b", reversed(range(10)))):
        store = Store(tmp_path / name)
        for i in order:
            store.put([row(i)])
    a, b = Store(tmp_path / "a").rows(), Store(tmp_path / "b").rows()
    assert a.equals(b)
    assert a["seed"].to_list() == list(range(10))
    assert a["series"].to_list()[3] == [1.0, 3.0]


def test_an_empty_store_has_no_rows_and_makes_no_folder(tmp_path: Path) -> None:
    """Reading leaves no trace."""
    assert len(Store(tmp_path / "none").rows()) == 0
    assert not (tmp_path / "none").exists()


def test_small_parts_are_merged(tmp_path: Path) -> None:
    """Large ones stay as they are."""
    store = Store(tmp_path)
    store.put([row(i) for i in range(FEW)])
    for i in range(LOOSE + 5):
        store.put([row(1000 + i)])
    assert len(list(tmp_path.glob("*.parquet"))) < 10
    assert len(store.rows()) == FEW + LOOSE + 5
    store.tidy()
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    assert len(Store(tmp_path).rows()) == FEW + LOOSE + 5


def test_a_merge_reads_large_parts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the cost of a store with many runs does not grow with what is there."""
    store = Store(tmp_path)
    store.put([row(i) for i in range(FEW)])
    (large,) = tmp_path.glob("*.parquet")
    read: list[Path] = []
    genuine = Path.read_bytes

    def reading(path: Path) -> bytes:
        read.append(path)
        return genuine(path)

    monkeypatch.setattr(Path, "read_bytes", reading)
    for i in range(3):
        store.put([row(1000 + i)])
        store.tidy()
    assert read.count(large) == 1
    assert len(read) > 3


def test_duplicate_rows_count_once(tmp_path: Path) -> None:
    """Two processes may have made the same run."""
    for _ in range(2):
        Store(tmp_path).put([row(1), row(2)])
    assert len(Store(tmp_path).rows()) == 2


def test_a_column_without_values_has_the_same_type_in_all_parts(tmp_path: Path) -> None:
    """Otherwise other programs could not read the folder."""
    Store(tmp_path).put([row(1, None)])
    Store(tmp_path).put([row(2, 0.25)])
    assert Store(tmp_path).rows()["value"].to_list() == [None, 0.25]
    parts = str(tmp_path / "*.parquet")
    assert pl.read_parquet(parts).height == 2
    assert len(pd.read_parquet(tmp_path)) == 2
    query = duckdb.sql(f"select sum(value) from '{parts}'")
    assert query is not None
    assert query.fetchall() == [(0.25,)]


@pytest.mark.parametrize("harm", ["cut", "flipped", "emptied"])
def test_a_damaged_part_is_named_and_set_aside(tmp_path: Path, harm: str) -> None:
    """It is not silently read, and the other parts stay."""
    store = Store(tmp_path)
    store.put([row(1)])
    store.put([row(2)])
    part = next(
        path for path in tmp_path.glob("*.parquet") if pl.read_parquet(path)["seed"][0] == 1
    )
    data = bytearray(part.read_bytes())
    if harm == "cut":
        del data[len(data) // 2 :]
    elif harm == "emptied":
        data.clear()
    else:
        data[len(data) // 3] ^= 4
    part.write_bytes(data)
    again = Store(tmp_path)
    assert again.rows()["seed"].to_list() == [2]
    assert again.damaged == [part.name]
    assert (tmp_path / ASIDE / part.name).exists()
    # What was set aside is not among what others read.
    assert len(pd.read_parquet(tmp_path)) == 1
    assert Store(tmp_path).damaged == [] or len(Store(tmp_path).rows()) == 1


def foreign() -> dict[str, pl.DataFrame]:
    """Return tables of other programs, increasingly similar to ours."""
    good = pl.DataFrame([row(1)])
    return {
        "other columns": pl.DataFrame({"a": [1, 2]}),
        "no rows of any column": pl.DataFrame(),
        "a key alone": good.select("key"),
        "seeds as text": good.with_columns(pl.col("seed").cast(pl.String)),
        "axes that are no list": good.with_columns(pl.lit("5").alias("axes")),
        "axes that are no JSON": good.with_columns(pl.lit("[").alias("axes")),
        "axes of other columns": good.with_columns(pl.lit('["n"]').alias("axes")),
        "nothing measured": good.with_columns(pl.lit(None, pl.String).alias("measured")),
    }


@pytest.mark.parametrize("case", foreign())
def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path, case: str) -> None:
    """Even if its name is the hash of its bytes: never read, never moved."""
    Store(tmp_path).put([row(1), row(2)])
    raw = io.BytesIO()
    foreign()[case].write_parquet(raw)
    name = f"{hashlib.sha256(raw.getvalue()).hexdigest()[:32]}.parquet"
    (tmp_path / name).write_bytes(raw.getvalue())
    before = sorted(tmp_path.glob("*.parquet"))
    for use in (Store(tmp_path).rows, Store(tmp_path).tidy):
        with pytest.raises(InputError, match=f"{name}: is not a part of a store of sojourn"):
            use()
    assert sorted(tmp_path.glob("*.parquet")) == before
    (tmp_path / name).unlink()
    assert len(Store(tmp_path).rows()) == 2


def test_a_file_of_another_program_with_such_a_name_is_not_moved(tmp_path: Path) -> None:
    """Some programs name files by other hashes: that is no damage."""
    Store(tmp_path).put([row(1)])
    name = f"{'0' * 32}.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / name)
    with pytest.raises(InputError, match="it has other columns"):
        Store(tmp_path).rows()
    assert (tmp_path / name).exists()
    (tmp_path / name).write_bytes(b"no table at all")
    assert Store(tmp_path).rows().height == 1
    assert (tmp_path / ASIDE / name).exists()


def test_parallel_writers_lose_no_row(tmp_path: Path) -> None:
    """Each with its own Store, merging parts while others write and read."""

    def write(k: int) -> None:
        for i in range(30):
            Store(tmp_path).put([row(100 * k + i)])
            Store(tmp_path).tidy()

    threads = [threading.Thread(target=write, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Store(tmp_path).rows()) == 90


def test_merging_during_a_listing_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing may contain neither the old nor the new parts."""
    for i in range(3):
        Store(tmp_path).put([row(i)])
    whole = Store._parts
    calls = []

    def torn(store: Store) -> list[Path]:
        calls.append(1)
        if len(calls) == 1:
            before = whole(store)
            Store(tmp_path).tidy()
            return before[:1]  # listed before it was removed
        return whole(store)[1:] if len(calls) == 2 else whole(store)

    store = Store(tmp_path)
    monkeypatch.setattr(store, "_parts", lambda: torn(store))
    assert store.rows()["seed"].to_list() == [0, 1, 2]


def test_a_clock_that_is_set_back_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading of the clock is an hour before the last one; the files are old too."""
    tree = {"duration": "50ms", "links": {"up": {"rate": "1mbit"}},
            "flows": [{"name": "f", "path": ["up"]}]}  # fmt: skip
    sweep = make_sweep(tree, {"f.count": [1, 2]}, seeds=[1, 2])
    whole = run_sweep(sweep, out=tmp_path / "whole", jobs=2)
    now = [2e9]

    def back() -> float:
        now[0] -= 3600.0
        return now[0]

    monkeypatch.setattr("time.time", back)
    monkeypatch.setattr("time.time_ns", lambda: int(back() * 1e9))
    few = make_sweep(tree, {"f.count": [1, 2]}, seeds=[1])
    assert run_sweep(few, out=tmp_path / "back", jobs=2).executed == 2
    for path in (tmp_path / "back").iterdir():
        os.utime(path, (1.0, 1.0))
    rest = run_sweep(sweep, out=tmp_path / "back", jobs=2)
    assert rest.executed == 2
    assert rest.rows == whole.rows
    assert rest.wall_s >= 0
    assert Store(tmp_path / "back").rows().equals(Store(tmp_path / "whole").rows())


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    """Parts are written under a temporary name and renamed."""
    Store(tmp_path).put([row(1)])
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"]


SMALL_SWEEP = make_sweep(
    {
        "duration": "50ms",
        "links": {"up": {"rate": "1mbit"}},
        "flows": [{"name": "f", "path": ["up"]}],
    },
    {"f.count": [1, 2]},
)


def leave(directory: Path) -> list[Path]:
    """Write the files of a writer that was killed in the middle of a write."""
    left = [directory / ".part-1a2b3c", directory / "._sweep-0123456789ab.4711.part.json"]
    for path in left:
        path.write_bytes(b"PAR1")
    return left


def test_temporary_files_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    """By the next run into the folder; files with other names stay."""
    out = tmp_path / "out"
    run_sweep(SMALL_SWEEP, out=out)
    (out / ".hidden").write_text("mine")
    left = leave(out)
    assert run_sweep(SMALL_SWEEP, out=out).executed == 0
    assert not any(path.exists() for path in left)
    assert (out / ".hidden").exists()
    assert Store(out).rows().height == 2


def test_a_second_writer_is_warned(tmp_path: Path) -> None:
    """Files of the first writer stay; after its end there is no warning."""
    out = tmp_path / "out"
    with Store(out).writing():
        left = leave(out)
        with pytest.warns(StoreWarning, match="out: another process of sojourn writes to this"):
            assert run_sweep(SMALL_SWEEP, out=out).executed == 2
        assert all(path.exists() for path in left)
    assert run_sweep(SMALL_SWEEP, out=out).executed == 0
    assert not any(path.exists() for path in left)


def test_the_lock_of_a_killed_writer_ends_with_it(tmp_path: Path) -> None:
    """The next writer is alone: there are no stale locks."""
    code = "import sys; from sojourn.sweeps.store import Store\n"
    code += "with Store(sys.argv[1]).writing(): print('in', flush=True); sys.stdin.read()"
    line = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"in\n"
        with pytest.warns(StoreWarning), Store(tmp_path).writing():
            left = leave(tmp_path)
        writer.kill()
        writer.wait()
    with Store(tmp_path).writing():
        assert not any(path.exists() for path in left)


def test_a_folder_without_locks_is_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on network file systems without flock: no removal, no warning."""

    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    left = leave(tmp_path)
    assert run_sweep(SMALL_SWEEP, out=tmp_path).executed == 2
    assert all(path.exists() for path in left)


def test_a_keeper_reports_errors(tmp_path: Path) -> None:
    """The error of an impossible folder is raised by `keep` or at the end of the block."""
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file")
    with pytest.raises(InputError, match="file"), RowWriter(store) as keeper:
        keeper.append(row(1))
