"""Measure a store of ten million runs: its size, and queries by sojourn, DuckDB and Polars.

`make bench-store` prints the tables of docs/how-to/cluster.md, in minutes and with some GB of disk
and memory; `--rows N` for fewer rows. The rows are of 10,000 runs, repeated with other keys
and seeds.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import sojourn as sj
from sojourn.sweeps.store import Store

CASE = {
    "duration": "4s",
    "warmup": "1s",
    "links": {"up": {"rate": "10mbit", "delay": "5ms", "qdisc": "codel"}},
    "flows": [
        {
            "name": "bulk",
            "path": ["up"],
            "rtt": "30ms",
            "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
        }
    ],
}
AXES = {"up.qdisc": ["droptail", "codel", "red", "pie", "hred"], "bulk.count": [1, 2, 4, 8]}
SEEDS = 500
"""Seeds of a point. A part has the 10,000 runs; a sweep writes one of its runs of each second."""

PARTS = "'{folder}/*.parquet'"
COLUMNS = '"up.qdisc", "bulk.count", sojourn_p99_s'


def duckdb(source: str) -> str:
    """Return a program that prints how many points have a mean."""
    query = f'select "up.qdisc", "bulk.count", avg(sojourn_p99_s) from {source} group by all'
    quiet = "duckdb.sql('set enable_progress_bar = false')"
    return f"import duckdb; {quiet}; print(len(duckdb.sql({query!r}).fetchall()))"


def polars(aggregate: str) -> str:
    """Return a program that prints how many points have a mean or quantile."""
    groups = f"pl.scan_parquet({PARTS}).group_by('up.qdisc', 'bulk.count')"
    column = "pl.col('sojourn_p99_s')"
    whole = f"{groups}.agg({column}.{aggregate}).collect(engine='streaming')"
    return f"import polars as pl; print({whole}.height)"


MILLION = 1_000_000
"""Rows of the store whose memory is measured."""

MEMORY = {
    "`sj.results`, three columns": (
        "import sojourn as sj; columns = ['sojourn_p99', 'utilisation', 'loss_rate']; "
        "sj.results({folder!r}, columns=columns)"
    ),
    "`sj.results`, all columns": "import sojourn as sj; sj.results({folder!r})",
    "`sojourn results`, mean of one column": (
        "from sojourn.cli.main import main; "
        "main(['results', {folder!r}, '--metric', 'utilisation', '--json'])"
    ),
    "`sojourn sweep` of four runs into the folder": (
        "import sojourn as sj; axes = {{'up.qdisc': ['codel', 'pie'], 'bulk.count': [1, 2]}}; "
        "sj.sweep({case!r}, axes, out={folder!r})"
    ),
    "`sojourn sweep collect`": (
        "from sojourn.sweeps.shards import collect; collect([{folder!r}], {folder!r} + '-all')"
    ),
}
"""Programs by name, in the order in which they use a store."""

QUERIES = {
    "DuckDB, mean of each point": duckdb(PARTS),
    "DuckDB, mean, each run once": duckdb(
        f"(select distinct on (key) key, {COLUMNS} from {PARTS})"
    ),
    "Polars, mean of each point": polars("mean()"),
    "Polars, 99 % quantile of each point": polars("quantile(0.99)"),
}
"""Programs by name."""


def write(folder: Path, rows: int) -> None:
    """Write a store with the rows of real runs, each part with other keys and seeds."""
    real = folder / "real"
    sj.sweep(CASE, AXES, seeds=SEEDS, out=real)
    base = Store(real).rows()
    store = Store(folder / "store")
    for part in range(rows // base.height):
        key = pl.format("{}{}", pl.col("key").str.slice(0, 56), pl.lit(f"{part:08x}"))
        store.put_frame(base.with_columns(key.alias("key"), pl.col("seed") + part * SEEDS))


def memory_of(program: str) -> float:
    """Return the peak memory of a program in GB."""
    peak = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    command = [sys.executable, "-W", "ignore", "-c", f"{program}\n{peak}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1e6


def measured(program: str) -> tuple[float, float]:
    """Return the wall time in seconds and the memory in GB of a program."""
    before = time.perf_counter()
    inside = (
        f"import resource\n{program}\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", inside], capture_output=True, text=True, check=True
    )
    points, memory_kb = done.stdout.split()
    assert int(points) == 20, points
    return time.perf_counter() - before, int(memory_kb) / 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(dir="out" if Path("out").exists() else None) as name:
        folder = Path(name)
        write(folder, rows)
        parts = list((folder / "store").glob("*.parquet"))
        size = sum(path.stat().st_size for path in parts)
        columns = pl.read_parquet_schema(parts[0])
        print(f"{rows} rows of {len(columns)} columns, {len(parts)} parts, {size / 1e9:.2f} GB")
        print("\n| query | time | memory |\n|---|---|---|")
        for query, program in QUERIES.items():
            took, memory = measured(program.replace("{folder}", str(folder / "store")))
            print(f"| {query} | {took:.1f} s | {memory:.1f} GB |", flush=True)
        write(folder / "million", min(rows, MILLION))
        million = folder / "million" / "store"
        for note in (folder / "million" / "real").glob("_sweep-*.json"):
            (million / note.name).write_bytes(note.read_bytes())
        print("\n| command | memory |\n|---|---|")
        for name, program in MEMORY.items():
            memory = memory_of(program.format(folder=str(million), case=CASE))
            print(f"| {name} | {memory:.2f} GB |", flush=True)


if __name__ == "__main__":
    main()
