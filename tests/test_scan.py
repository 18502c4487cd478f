"""Named columns of a store: the values of the whole rows, each row once, in little memory."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.cli.main import main
from sojourn.sweeps import scan
from sojourn.sweeps.results import rows_for
from sojourn.sweeps.scan import Parts
from sojourn.sweeps.shards import collect
from sojourn.sweeps.spec import make_sweep, run_sweep
from sojourn.sweeps.store import Store
from sojourn.sweeps.work_queue import Memory

CASE = {
    "duration": "1s",
    "links": {"up": {"rate": "2mbit"}},
    "flows": [
        {"name": "f", "path": ["up"], "source": {"name": "bulk", "start": "uniform(0s, 300ms)"}}
    ],
}
AXES = {"up.qdisc": ["pie", "codel", "droptail"], "f.count": [10, 2]}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 24 runs."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    sj.sweep(CASE, AXES, seeds=4, out=out)
    return out


def doubled(done: Path, folder: Path) -> Path:
    """Return a copy of a store with some rows twice, and columns of other types in a part."""
    rows = Store(done).rows()
    copy = Store(folder)
    copy.put_frame(rows[:10])
    copy.put_frame(rows[6:20].with_columns(pl.col("f.count").cast(pl.Float64)))
    copy.put_frame(rows[18:].with_columns(pl.lit(1.0).alias("further")))
    for note in done.glob("_sweep-*.json"):
        (folder / note.name).write_bytes(note.read_bytes())
    return folder


@pytest.mark.parametrize("block_bytes", [1, scan.BLOCK_BYTES])
def test_columns_are_those_of_the_whole_rows(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """In the same order, also with rows twice and other types, read part by part or together."""
    monkeypatch.setattr(scan, "BLOCK_BYTES", block_bytes)
    for folder in (done, doubled(done, tmp_path / "copy")):
        whole = sj.results(folder)
        some = sj.results(folder, columns=["sojourn_p99", "f.goodput_bps"])
        names = ["up.qdisc", "f.count", "seed", "sojourn_p99_s", "f.goodput_bps"]
        assert some.columns == names
        assert some.equals(whole.select(names))
        assert some["up.qdisc"].unique(maintain_order=True).to_list() == AXES["up.qdisc"]
    assert len(sj.results(tmp_path / "copy", columns="utilisation")) == 24 + 2
    assert len(Store(tmp_path / "copy").rows()) == 24 + 2


def test_a_condition_selects_rows(done: Path) -> None:
    """It may name other columns, and depend on all rows."""
    whole = sj.results(done)
    for where in (
        pl.col("up.qdisc") == "codel",
        (pl.col("utilisation") > 0.5) & (pl.col("seed") == 2),
        pl.col("sojourn_mean_s") > pl.col("sojourn_mean_s").mean(),
        pl.col("seed") == 99,
    ):
        chosen = whole.filter(where)
        assert sj.results(done, where=where).equals(chosen)
        some = sj.results(done, columns="loss_rate", where=where)
        assert some.equals(chosen.select("up.qdisc", "f.count", "seed", "loss_rate"))


def test_unknown_columns_are_named(done: Path) -> None:
    """Both arguments name the value, and the nearest column."""
    with pytest.raises(sj.InputError, match=r'no column "sojourn_p9", did you mean "soj'):
        sj.results(done, columns="sojourn_p9")
    for columns in (None, "utilisation"):
        with pytest.raises(sj.InputError, match=r'where: no column "qdisc"'):
            sj.results(done, columns=columns, where=pl.col("qdisc") == "codel")
        with pytest.raises(sj.InputError, match=r"where: .* is not a condition; a polars expr"):
            sj.results(done, columns=columns, where="up.qdisc=codel")  # type: ignore[arg-type]


def test_runs_and_comparisons_have_columns_too(tmp_path: Path) -> None:
    """Folders that are no stores."""
    sj.simulate(CASE).save(tmp_path / "run")
    sj.compare(CASE, "codel,pie").save(tmp_path / "compare")
    assert sj.results(tmp_path / "run", columns="utilisation").columns == ["seed", "utilisation"]
    rows = sj.results(tmp_path / "compare", columns="utilisation")
    assert rows["qdisc"].to_list() == ["codel", "pie"]


def test_means_need_the_whole_rows(done: Path) -> None:
    """A percentile is over the values of all runs, which these columns do not have."""
    with pytest.raises(sj.InputError, match="rows: are not runs of sweep"):
        sj.means(sj.results(done, columns="sojourn_p99"))


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--metric", "sojourn_p99", "--metric", "loss_rate", "--where", "f.count=2"),
        ("--metric", "utilisation", "--pair", "up.qdisc=pie"),
        ("--metric", "sojourn_p95", "--pivot", "f.count"),
        ("--metric", "f.goodput", "--rows"),
        ("--metric", "f.goodput", "--by", "up.qdisc", "--where", "f.count=10"),
    ],
)
def test_the_command_reads_what_its_table_needs(
    done: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    """Tables are as from the whole rows."""
    assert main(["results", str(done), "--json", *words]) == 0
    narrow = capsys.readouterr().out

    def whole(directory: str, metrics: object, **options: object) -> pl.DataFrame:
        from sojourn.sweeps.query import where

        return where(sj.results(directory), options["settings"])  # type: ignore[arg-type]

    monkeypatch.setattr("sojourn.sweeps.results.rows_for", whole)
    assert main(["results", str(done), "--json", *words]) == 0
    assert narrow == capsys.readouterr().out
    assert '"table"' in narrow


def test_estimates_have_their_sources(done: Path) -> None:
    """Distributions of a percentile, and numbers of events of a share; no other columns."""
    assert rows_for(done, ["sojourn_p99", "loss_rate"]).columns == [
        *("up.qdisc", "f.count", "seed", "sojourn_p99_s", "loss_rate"),
        *("sojourn_values", "dropped_packets", "axes"),
    ]


def test_a_campaign_holds_only_its_own_runs(done: Path) -> None:
    """A store has runs of other sweeps, whose rows are not kept."""
    rows = Store(done).rows()
    memory = Memory(Store(done), set(rows["key"][:3]))
    assert sorted(memory.known) == sorted(rows["key"][:3])
    more = make_sweep(CASE, {**AXES, "up.qdisc": ["codel"]}, seeds=4)
    assert run_sweep(more, out=done).executed == 0


def test_collect_writes_parts_of_limited_size(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of several folders are never together in memory; those in two count once."""
    monkeypatch.setattr("sojourn.sweeps.shards.PART_ROWS", 5)
    monkeypatch.setattr(scan, "BLOCK_BYTES", 1)
    other = doubled(done, tmp_path / "copy")
    for part in other.glob("*.parquet"):
        rows = pl.read_parquet(part)
        if rows.schema["f.count"] == pl.Float64 or "further" in rows.columns:
            part.unlink()
    (tmp_path / "all").mkdir()
    assert collect([other, done], tmp_path / "all").runs == 24
    parts = Parts(tuple(Store(tmp_path / "all").parts()))
    assert len(parts.paths) == 2
    assert parts.height == 24
    assert Store(tmp_path / "all").rows().equals(Store(done).rows())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the peak memory")
def test_a_large_store_is_not_held(done: Path, tmp_path: Path) -> None:
    """Named columns, a sweep into the store, and collect, of 160,000 rows of 1 kB and more."""
    base = Store(done).rows()
    large = Store(tmp_path / "large")
    wide = pl.concat([base] * 334)[:8000]
    for part in range(20):
        key = pl.format("{}-{}", pl.int_range(pl.len()), pl.lit(part))
        seed = pl.int_range(pl.len(), dtype=pl.Int64) + 8000 * part
        text = pl.format("1:{}", pl.int_range(pl.len()) + 1).alias("sojourn_values")
        large.put_frame(wide.with_columns(key.alias("key"), seed.alias("seed"), text))
    for note in done.glob("_sweep-*.json"):
        (tmp_path / "large" / note.name).write_bytes(note.read_bytes())
    whole, some, again, merged = (
        peak(program.format(case=CASE, large=str(tmp_path / "large"), all=str(tmp_path / "all")))
        for program in (
            "assert len(sj.results({large!r})) == 160_000",
            "assert len(sj.results({large!r}, columns='utilisation')) == 160_000",
            "sj.sweep({case!r}, {{'up.qdisc': ['codel'], 'f.count': [2]}}, out={large!r})",
            "from sojourn.sweeps.shards import collect; collect([{large!r}], {all!r})",
        )
    )
    assert max(some, again, merged) < whole / 2, (whole, some, again, merged)


def peak(program: str) -> int:
    """Return the peak memory of a program in kB, without what Python and Polars take."""
    inside = (
        "import re, warnings, pathlib, polars, sojourn as sj\n"
        "def peak(): return int(re.search(r'VmHWM:\\s+(\\d+)', "
        "pathlib.Path('/proc/self/status').read_text())[1])\n"
        "warnings.simplefilter('ignore'); sj.results; before = peak()\n"
        f"{program}\nprint(peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", inside], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
