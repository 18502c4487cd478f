"""Sweeps: points, seeds, stores, executors, tables and figures, as a user meets them."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import metrics
from sojourn.sweeps import query
from sojourn.sweeps.axes import points, read_axes
from sojourn.sweeps.spec import make_sweep, run_sweep
from sojourn.sweeps.store import Store
from support.sweep_cases import AXES, CASE, SWEEP, called, command, csv, described, ran

KILLS = int(os.environ.get("SOJOURN_KILLS", "4"))
"""Number of kills of a sweep; `make faults` uses 50."""


def spanned(axes: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return the labels of all points."""
    return [labels for labels, _ in points(CASE, read_axes(axes), **more)]


def test_axes_span_a_grid() -> None:
    """The last axis varies fastest; the base scenario is unchanged."""
    grid = list(points(CASE, read_axes(AXES)))
    assert [tuple(labels.values()) for labels, _ in grid] == [
        ("droptail", 1), ("droptail", 3), ("codel", 1), ("codel", 3),
    ]  # fmt: skip
    assert grid[1][1]["flows"][0]["count"] == 3
    assert grid[1][1]["links"]["up"]["qdisc"] == "droptail"
    assert CASE["flows"][0]["count"] == 2


def test_ranges_and_units() -> None:
    """Steps, numbers of points, equal factors; labels are numbers, scenarios have units."""
    steps = read_axes({"r": {"set": "up.rate", "from": 5, "to": 20, "step": 5, "unit": "mbit"}})
    assert steps[0].values == ((5, "5mbit"), (10, "10mbit"), (15, "15mbit"), (20, "20mbit"))
    log = read_axes({"n": {"from": 1, "to": 1000, "points": 4, "log": True}})
    assert [value for _, value in log[0].values] == [1, 10, 100, 1000]
    even = read_axes({"n": {"from": 0.1, "to": 0.5, "points": 5}})
    assert [value for _, value in even[0].values] == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_linked_axes_conditions_and_unset_axes() -> None:
    """An axis that does not apply has a dash, and adds no points."""
    both = {"a": {"set": "up.rate", "values": [1, 2], "unit": "mbit"},
            "b": {"set": "up.delay", "values": [3, 4], "unit": "ms"}}  # fmt: skip
    assert spanned(both, together=[["a", "b"]]) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert {"a": 1, "b": 4} not in spanned(both, skip=[{"a": 1, "b": 4}])
    when = {
        "qdisc": {"set": "up.qdisc", "values": ["droptail", "codel"]},
        "target": {"set": "up.qdisc.target", "values": ["5ms", "15ms"], "when": {"qdisc": "codel"}},
    }
    assert [tuple(labels.values()) for labels in spanned(when)] == [
        ("droptail", "-"), ("codel", "5ms"), ("codel", "15ms"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("axes", "more", "message"),
    [
        ({}, {}, "axes: a sweep requires at least one"),
        ({"qdisc": "codel"}, {}, 'axes.qdisc: "codel" is not a list'),
        ({"up.qdisc": []}, {}, "axes.up.qdisc: there are no values"),
        ({"up.qdisc": ["codel", "codel"]}, {}, "axes.up.qdisc: a value is given twice"),
        ({"n": {"set": "up.rate", "value": [1]}}, {}, 'axes.n: unknown key "value"'),
        ({"n": {"from": 1, "to": 5}}, {}, "axes.n: give it either step or points"),
        ({"n": {"from": 0, "to": 5, "points": 3, "log": True}}, {}, "from and to above 0"),
        ({"dwn.rate": ["1mbit"]}, {}, 'axes.dwn.rate: "dwn" is not a link, flow or key'),
        ({"up.qdisc": ["codle"]}, {}, 'did you mean "codel"'),
        ({"up.rate": [5]}, {}, "links.up.rate"),
        (AXES, {"together": [["qdisc", "n"]]}, 'together.0: no axis "n"'),
        (AXES, {"skip": [{"qdisc": "red"}]}, 'skip.0.qdisc: no value "red"'),
        (AXES, {"seeds": 0}, "seeds: 0 is out of range"),
        (AXES, {"seeds": [1, 1]}, "seeds: a seed is given twice"),
        (AXES, {"metrics": ["jain"]}, 'did you mean "jain_index"'),
        (AXES, {"metrics": [{"name": "jitter_s", "flw": "x"}]}, 'has no argument "flw"'),
        (AXES, {"until": {"metrics": ["utilisation"]}}, "until.relative: null is out of range"),
        (AXES, {"until": {"metrics": ["util"], "relative": 0.1}}, 'no column "util"'),
        (
            AXES,
            {"until": {"metrics": ["utilisation"], "relative": 0.1, "least": 5}},
            "until: least 5 and most 100; allowed: 20 <= least <= most <= 1000000",
        ),
        (
            AXES,
            {"until": {"metrics": ["bulk.jain"], "relative": 0.1}},
            'until.metrics.0: "bulk.jain" has no interval',
        ),
    ],
)
def test_bad_input_names_its_path(axes: Any, more: dict[str, Any], message: str) -> None:
    """Before any run."""
    with pytest.raises(sj.InputError) as refused:
        sj.sweep(CASE, axes, **more)
    assert message in str(refused.value)


def test_a_sweep_has_a_row_for_each_run_with_paired_seeds() -> None:
    """The numbers are the same as of single runs."""
    rows = sj.sweep(CASE, AXES, seeds=3, metrics=["jain_index", {"name": "goodput_bps"}])
    assert rows.height == 12
    assert rows["seed"].to_list() == [1, 2, 3] * 4
    last = rows.row(-1, named=True)
    tree = {**CASE, "seed": 3, "flows": [{**CASE["flows"][0], "count": 3}]}
    result = sj.simulate(tree)
    assert last["sojourn_p99_s"] == result.links["up"].sojourn_p99_s
    assert last["bulk.goodput_bps"] == last["goodput_bps"] == metrics.goodput_bps(result)
    assert last["jain_index"] == last["bulk.jain"]


def test_models_are_values() -> None:
    """Labelled by their names; several of one name by their parameters."""
    axes = {"up.qdisc": [sj.CoDel(target="5ms"), sj.CoDel(target="15ms"), sj.DropTail()]}
    rows = sj.sweep(CASE, axes)
    assert rows["up.qdisc"].n_unique() == 3
    assert rows["sojourn_mean_s"].n_unique() == 3


def test_executors_agree(tmp_path: Path) -> None:
    """Serial, threads, processes: the same table and stored rows."""
    tables = [sj.sweep(CASE, AXES, seeds=3, out=tmp_path / "serial", jobs=1)]
    tables.append(sj.sweep(CASE, AXES, seeds=3, out=tmp_path / "threads", jobs=2))
    with ThreadPoolExecutor(2) as pool:
        tables.append(sj.sweep(CASE, AXES, seeds=3, executor=pool))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        tables.append(sj.sweep(CASE, AXES, seeds=3, out=tmp_path / "processes", executor=pool))
    assert all(table.equals(tables[0]) for table in tables[1:])
    stored = [csv(tmp_path / name) for name in ("serial", "threads", "processes")]
    assert stored[0] == stored[1] == stored[2]


def test_stored_runs_are_reused(tmp_path: Path) -> None:
    """Runs are identified by scenario, seed, engine and measure."""
    first = run_sweep(make_sweep(CASE, AXES, seeds=2), out=tmp_path)
    again = run_sweep(make_sweep(CASE, AXES, seeds=2), out=tmp_path)
    wider = run_sweep(make_sweep(CASE, AXES, seeds=3), out=tmp_path)
    assert (first.executed, again.executed, wider.executed) == (8, 0, 4)
    assert again.rows == first.rows
    assert wider.rows[:2] == first.rows[:2]
    # The same runs under another name are not made again either.
    other = {"law" if name == "qdisc" else name: axis for name, axis in AXES.items()}
    assert run_sweep(make_sweep(CASE, other, seeds=2), out=tmp_path).executed == 0


def test_runs_of_another_engine_are_not_mixed_in(tmp_path: Path, capsys: Any) -> None:
    """They are repeated, and tables leave them out with a note."""
    run_sweep(make_sweep(CASE, AXES), out=tmp_path)
    rows = Store(tmp_path).rows()
    for part in tmp_path.glob("*.parquet"):
        part.unlink()
    old = rows.with_columns(pl.lit("0.0.1+0").alias("engine"), pl.col("key").str.reverse())
    Store(tmp_path).put(old.to_dicts())
    assert run_sweep(make_sweep(CASE, AXES), out=tmp_path).executed == 4
    assert sj.results(tmp_path).height == 4
    assert "4 rows of other engines are left out" in capsys.readouterr().err
    assert sj.results(tmp_path, engine="0.0.1+0").height == 4
    with pytest.raises(sj.InputError, match="no runs of engine"):
        sj.results(tmp_path, engine="9")


def test_seeds_are_added_until_intervals_are_narrow() -> None:
    """Without variance the minimum; with variance more; never above the maximum."""
    fixed = {**CASE, "flows": [{"name": "bulk", "path": ["up"], "rtt": "30ms"}]}
    until = {"metrics": ["utilisation"], "relative": 0.05, "least": 20, "most": 40}
    with pytest.warns(sj.ScenarioWarning, match="20 seeds have identical results"):
        assert sj.sweep(fixed, {"up.qdisc": ["droptail"]}, until=until).height == 20
    until = {"metrics": ["sojourn_mean_s"], "relative": 0.02, "least": 20, "most": 60}
    rows = sj.sweep(CASE, {"up.qdisc": ["codel"]}, until=until)
    assert rows.height > 20
    table = query.means(rows, ["up.qdisc"], ["sojourn_mean_s"])
    half = table["sojourn_mean_s_high"][0] - table["sojourn_mean_s"][0]
    assert rows.height == 60 or half <= 0.02 * table["sojourn_mean_s"][0]
    until = {"metrics": ["sojourn_mean_s"], "relative": 0.0001, "least": 20, "most": 24}
    assert sj.sweep(CASE, {"up.qdisc": ["codel"]}, until=until).height == 24


def test_tables_of_means_pairs_and_columns(tmp_path: Path) -> None:
    """Compared with NumPy."""
    sj.sweep(CASE, AXES, seeds=4, out=tmp_path)
    rows = sj.results(tmp_path)
    table = query.means(rows, ["qdisc", "bulk.count"], ["sojourn_mean_s"])
    assert table.height == 4
    mine = rows.filter((pl.col("qdisc") == "codel") & (pl.col("bulk.count") == 3))
    values = mine["sojourn_mean_s"].to_numpy()
    row = table.filter((pl.col("qdisc") == "codel") & (pl.col("bulk.count") == 3))
    assert row["sojourn_mean_s"][0] == pytest.approx(values.mean())
    # t(3, 0.975) = 3.182
    half = 3.182446 * values.std(ddof=1) / 2
    assert row["sojourn_mean_s_high"][0] == pytest.approx(values.mean() + half, rel=1e-6)
    pairs = query.differences(
        rows, "qdisc", "droptail", ["qdisc", "bulk.count"], ["sojourn_mean_s"]
    )
    assert pairs.height == 2
    assert (pairs["sojourn_mean_s"] < 0).all()
    across = query.pivoted(table, "bulk.count", "sojourn_mean_s")
    assert across.columns == ["qdisc", "1", "3"]
    with pytest.raises(sj.InputError, match="varies too"):
        query.means(rows, ["qdisc"], ["sojourn_mean_s"])


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """Return a folder of its own with a sweep file."""
    return described(tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results of a sweep in `out`."""
    folder = described(tmp_path_factory.mktemp("swept"))
    assert called("sweep", folder / "sweep.toml", "--out", folder / "out").returncode == 0
    return folder


def test_the_commands(swept: Path) -> None:
    """Sweep, results and plot, as on the page."""
    out, figure = swept / "out", swept / "figure.png"
    done = called("sweep", swept / "sweep.toml", "--out", out)
    assert "30 of 30 runs made" in done.stdout, done.stderr
    assert "0 of 30 runs made" in called("sweep", swept / "sweep.toml", "--out", out).stdout
    summary = json.loads(called("sweep", swept / "sweep.toml", "--out", out, "--json").stdout)
    assert (summary["runs"], summary["made"], summary["axes"]) == (30, 0, ["qdisc", "n"])
    assert len(summary["table"]) == 6
    names = ("--metric", "sojourn_p99", "--metric", "sojourn_mean")
    shown = called("results", out, *names, "--where", "n=4")
    assert "sojourn_p99, ms" in shown.stdout
    assert "±" in shown.stdout
    table = json.loads(called("results", out, "--pair", "qdisc=droptail", "--json").stdout)["table"]
    assert [row["n"] for row in table] == [1, 2, 4]
    called("results", out, "--rows", "--export", swept / "rows.csv")
    assert pl.read_csv(swept / "rows.csv").height == 30
    called("results", out, "--export", swept / "means.parquet")
    assert pl.read_parquet(swept / "means.parquet").height == 6
    for kind in ("line", "heat", "ecdf", "box"):
        at = ["--x", "n"] if kind in ("line", "heat") else ["--where", "n=2"]
        drawn = called("plot", out, "--y", "sojourn_p99", "--by", "qdisc", "--kind", kind,
                       "--out", figure, *at)  # fmt: skip
        assert drawn.returncode == 0, drawn.stderr
        assert figure.stat().st_size > 5000
        figure.unlink()
    limit = ("plot", out, "--y", "sojourn_p99", "--x", "n", "--by", "qdisc", "--out", figure)
    assert called(*limit, "--limit", "300ms").returncode == 0
    assert "has no unit" in called(*limit, "--limit", "300").stderr


def test_a_limit_is_a_line_in_the_unit_of_the_axis(done: Path) -> None:
    """An agreement of 300 ms is at 300 of an axis in ms."""
    rows = query.where(sj.results(done / "out"), ["n=4"])
    for kind, data in (("box", "get_ydata"), ("ecdf", "get_xdata")):
        look: dict[str, Any] = {"kind": kind, "limit": "300ms"}
        figure = sj.plot(rows, y="sojourn_p99", by="qdisc", **look)
        (line,) = [one for one in figure.axes[0].lines if one.get_label() == "limit 300ms"]
        assert getattr(line, data)()[0] == 300
    with pytest.raises(sj.InputError, match="has no unit"):
        sj.plot(rows, y="sojourn_p99", by="qdisc", kind="box", limit="300")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "nowhere.toml"], "nowhere.toml: no such file"),
        (["results", "{}/none"], "no such directory"),
        (["results", "{}/out", "--metric", "sojourn_p98"], 'did you mean "sojourn_p95_s"'),
        (["results", "{}/out", "--where", "qdisc=codle"], 'did you mean "codel"'),
        (["results", "{}/out", "--pair", "qdisc"], "--pair qdisc: write it as"),
        (["results", "{}/out", "--export", "a.xls"], "must end in"),
        (["plot", "{}/out", "--y", "utilisation", "--x", "n"], '"qdisc" varies too'),
        (["plot", "{}/out", "--y", "utilisation", "--kind", "pie"], 'unknown kind "pie"'),
    ],
)
def test_bad_commands_are_one_line(done: Path, arguments: list[str], message: str) -> None:
    """Exit code 2, no traceback."""
    words = [one.format(done) for one in arguments]
    words += ["--out", str(done / "x.png")] if words[0] != "results" else []
    refused = called(*words)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_killed_at_any_moment_it_continues_to_the_same_table(swept: Path) -> None:
    """After several SIGKILLs the last call gives the same table."""
    (swept / "sweep.toml").write_text(SWEEP.replace("seeds = 5", "seeds = 20"))
    whole, broken = swept / "whole", swept / "broken"
    ran("sweep", swept / "sweep.toml", "--out", whole)
    dice = random.Random(1)
    counts = []
    for _ in range(KILLS):
        running = subprocess.Popen(
            command("sweep", swept / "sweep.toml", "--out", broken),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(dice.uniform(0.2, 1.5))
        running.send_signal(signal.SIGKILL)
        running.wait()
        counts.append(len(Store(broken).rows()))
        if KILLS > 4 and counts[-1] == 120:  # begin again: there is more to kill
            assert csv(broken) == csv(whole)
            shutil.rmtree(broken)
            counts.append(0)
    done = ran("sweep", swept / "sweep.toml", "--out", broken)
    assert f"{120 - counts[-1]} of 120 runs made" in done.stdout
    assert csv(broken) == csv(whole)


def test_two_processes_write_into_one_store(swept: Path) -> None:
    """Together they give the table of one process."""
    both = [
        subprocess.Popen(
            command("sweep", swept / "sweep.toml", "--out", swept / "shared"),
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [one.wait() for one in both] == [0, 0]
    ran("sweep", swept / "sweep.toml", "--out", swept / "alone")
    assert csv(swept / "shared") == csv(swept / "alone")


def test_a_sweep_says_in_one_line_that_another_one_is_active(swept: Path) -> None:
    """On standard error; the sweep continues."""
    with Store(swept / "shared").writing():
        done = ran("sweep", swept / "sweep.toml", "--out", swept / "shared")
    message = (
        f"sojourn: warning: {swept / 'shared'}: another process of sojourn writes to this folder"
    )
    assert [line.startswith(message) for line in done.stderr.splitlines()] == [True]
    assert "runs made" in done.stdout


def test_a_damaged_part_is_named_and_its_runs_made_again(swept: Path) -> None:
    """It is not silently read."""
    out = swept / "out"
    ran("sweep", swept / "sweep.toml", "--out", out)
    before = csv(out)
    part = next(out.glob("*.parquet"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    done = ran("sweep", swept / "sweep.toml", "--out", out)
    assert f"{part.name} was damaged; its runs were repeated" in done.stderr
    assert "30 of 30 runs made" in done.stdout
    assert csv(out) == before


def test_a_full_disk_is_a_clear_error_and_loses_nothing(swept: Path) -> None:
    """A limit on the size of files simulates a full disk."""
    out = swept / "out"
    ran("sweep", swept / "sweep.toml", "--out", out)
    before = csv(out)
    wide = SWEEP.replace("seeds = 5", "seeds = 20")
    (swept / "sweep.toml").write_text(wide)
    script = " ".join(command("sweep", swept / "sweep.toml", "--out", out))
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; ulimit -f 8; exec {script}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert f"sojourn: {out}: file too large" in done.stderr
    assert "Traceback" not in done.stderr
    kept = csv(out).splitlines()
    assert set(before.splitlines()) <= set(kept)
    assert "of 120 runs made" in ran("sweep", swept / "sweep.toml", "--out", out).stdout


def test_ctrl_c_ends_it_cleanly(swept: Path) -> None:
    """One line, exit code 130, and finished runs are stored."""
    (swept / "sweep.toml").write_text(SWEEP.replace("seeds = 5", "seeds = 2000"))
    running = subprocess.Popen(
        command("sweep", swept / "sweep.toml", "--out", swept / "out"),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list((swept / "out").glob("*.parquet")):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    kept = f"finished runs are in {swept / 'out'}, the same command continues"
    assert errors == f"sojourn: interrupted; {kept}\n"
    assert 0 < len(Store(swept / "out").rows()) < 12000


def test_public_means_and_differences_take_short_names() -> None:
    """Axes and columns in any form; rows of comparisons as well."""
    rows = sj.sweep(CASE, AXES, seeds=3)
    every = sj.means(rows)
    assert every.columns[:4] == ["qdisc", "bulk.count", "runs", "utilisation"]
    short = sj.means(rows, ["qdisc", "bulk.count"], "sojourn_mean")
    assert short.equals(query.means(rows, ["qdisc", "bulk.count"], ["sojourn_mean_s"]))
    by_qdisc = sj.means(rows.filter(pl.col("bulk.count") == 3), "qdisc", "sojourn_mean")
    assert by_qdisc["runs"].to_list() == [3, 3]
    pairs = sj.differences(rows, "qdisc", "droptail", columns="sojourn_mean")
    assert pairs.columns[:4] == ["qdisc", "bulk.count", "pairs", "sojourn_mean_s"]
    frame = sj.compare(CASE, "droptail,codel", link="up", seeds=3).frame()
    assert sj.differences(frame, "qdisc", "droptail")["pairs"].to_list() == [3]
    faults: list[tuple[dict[str, Any], str]] = [
        ({"by": "load"}, r'by: no axis "load"'),
        ({"columns": "goodputt"}, 'no column "goodputt"'),
        ({"columns": "engine"}, "engine.* is not a column of numbers"),
    ]
    for wrong, text in faults:
        with pytest.raises(sj.InputError, match=text):
            sj.means(rows, **wrong)
    with pytest.raises(sj.InputError, match="rows: are not runs of sweep"):
        sj.means(pl.DataFrame({"utilisation": [1.0]}))
