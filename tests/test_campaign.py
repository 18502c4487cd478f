"""Long runs: progress, and interrupts that lose no finished run."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import sojourn as sj
from conftest import Command
from sojourn._util import progress
from sojourn._util.progress import Meter, amount
from sojourn.engines import simulate
from sojourn.result.result import Result
from sojourn.scenario.draft import Draft, parse
from sojourn.sweeps import compare


@pytest.fixture(scope="module")
def whole() -> Result:
    """A result with everything in it; one link sends nothing, so its means are of nothing."""
    flows = [
        sj.Flow(name="web", count=2, path=["up"], rtt="30ms", source=sj.Transfers(size="20kB")),
        sj.Flow(name="call", path=["up"], source=sj.Cbr()),
    ]
    links = {"up": sj.Link(rate="1mbit", qdisc=sj.Red(limit="20p")), "idle": sj.Link(rate="1mbit")}
    return sj.simulate(
        sj.Scenario(duration="5s", sample="50ms", packet_log=True, links=links, flows=flows),
        command=["made", "here"],
    )


def test_a_result_is_read_back_whole(whole: Result, tmp_path: Path) -> None:
    """Summary, command and every column, with its type, survive a save."""
    whole.save(tmp_path)
    back = sj.load_result(tmp_path)
    assert (back.summary, back.command) == (whole.summary, whole.command)
    assert np.array_equal(back.time_s, whole.time_s)
    pairs = [(whole.completions, back.completions)]
    for kind in ("links", "groups", "flows"):
        for name, record in getattr(whole, kind).items():
            other = getattr(back, kind)[name]
            pairs += [(record.series, other.series), (record.packet_log, other.packet_log)]
    columns = 0
    for one, other in pairs:
        assert set(one) == set(other)
        for name in one:
            assert one[name].dtype == other[name].dtype, name
            assert np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f")
            columns += 1
    assert columns > 50


def test_queries_are_kept(whole: Result, tmp_path: Path) -> None:
    """Sources with queries have a table of queries."""
    columns = {"query/flow": np.array([1, 0], dtype=np.uint32), "query/start_s": np.array([1, 2.0]),
               "query/duration_s": np.array([0.5, 0.25])}  # fmt: skip
    empty = {f"fct/{name}": column[:0] for name, column in whole.completions.items()}
    tree = {**whole.summary, "scenario": {**whole.scenario, "packet_log": False}}
    del tree["scenario"]["sample"], tree["sojourn"]
    Result(json.dumps(tree), {**columns, **empty}).save(tmp_path)
    back = sj.load_result(tmp_path)
    assert back.frame("queries")["flow"].to_list() == ["web.1", "web.0"]
    assert back.queries["duration_s"].tolist() == [0.5, 0.25]
    assert back.frame("queries").equals(pl.read_parquet(tmp_path / "queries.parquet"))
    assert whole.frame("queries").height == 0


def test_a_folder_that_is_no_result_is_refused(whole: Result, tmp_path: Path) -> None:
    """The message names the file or the directory."""
    with pytest.raises(sj.InputError, match=r"summary\.json: no such file"):
        sj.load_result(tmp_path)
    whole.save(tmp_path)
    (tmp_path / "series.parquet").write_text("nonsense")
    with pytest.raises(sj.InputError, match=r"series\.parquet: is not a table"):
        sj.load_result(tmp_path)


def test_an_interrupt_loses_no_finished_run(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four runs finish before it; the next call makes the other two."""
    tree, out = Draft.read(small).tree, tmp_path / "runs"
    expected = compare.compare(tree, ["droptail", "codel"], seeds=2)
    calls, last = 0, 2

    def stops(*columns: Any) -> sj.Result:
        nonlocal calls
        calls += 1
        if calls > last:
            raise KeyboardInterrupt
        return sj.Result(*columns)

    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr(simulate, "Result", stops)
    with pytest.raises(KeyboardInterrupt):
        compare.compare(tree, ["droptail", "codel"], seeds=2, out=out)
    kept = sorted(path.name for path in out.iterdir())
    assert kept == ["comparison.json", "droptail-1", "droptail-2"]
    stamp = (out / "droptail-1" / "summary.json").stat().st_mtime_ns
    calls, last = 0, 100
    runs = compare.compare(tree, ["droptail", "codel"], seeds=2, out=out)
    assert calls == 2, "only what was missing was run"
    assert (out / "droptail-1" / "summary.json").stat().st_mtime_ns == stamp
    for name, results in expected.items():
        assert [r.summary for r in runs[name]] == [r.summary for r in results]
    # Another scenario is refused; with force it is run, not taken for this one.
    other = Draft.read(tree).set(["duration=4s"]).tree
    with pytest.raises(sj.InputError, match="duration is 3s there, 4s here"):
        compare.compare(other, ["droptail", "codel"], seeds=2, out=out)
    compare.compare(other, ["droptail", "codel"], seeds=2, out=out, force=True)
    assert calls == 6


def test_compare_writes_into_out(small: Path, sojourn: Command) -> None:
    """The command writes the same table both times."""
    out = small.with_name("runs")
    first = sojourn("compare", small, "--qdisc", "droptail,red", "--out", out)
    assert first[0] == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["comparison.json", "droptail-1", "red-1"]
    assert sojourn("compare", small, "--qdisc", "droptail,red", "--out", out) == first
    code, _, err = sojourn("compare", small, "--qdisc", "red", "--out", small)
    assert code == 2
    assert "is not a directory" in err


def test_the_bar_shows_packets_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten seconds: 3 of 4 million packets, one run of two finished."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Meter([50.0, 50.0], shown=True) as meter:
        meter.update(0, 1.0, 3_000_000)
        now[0] = 110.0
        monkeypatch.setattr(progress, "PATIENCE_S", 1e9)
        meter.update(1, 0.5, 1_000_000)
        assert meter.text() == "75.0 of 100 s simulated, 400 k packets/s, 1 of 2 runs"
    with Meter([50.0], shown=True) as meter:
        now[0] = 111.0
        monkeypatch.setattr(progress, "PATIENCE_S", 0.5)
        meter.update(0, 0.25, 1_230_000)
        assert meter.text() == "12.5 of 50 s simulated, 1.23 M packets/s"
        assert meter._bar.tasks[0].completed == 12.5
    assert [amount(n) for n in (7.4, 1234, 5.6e9)] == ["7", "1.23 k", "5.60 G"]


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_the_bar_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Nothing is cut; a narrow terminal shows fewer numbers, and always the finished runs."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", str(columns))
    with Meter([50.0] * 2000, shown=True) as meter:
        for run in range(1000):
            now[0] += 1.0
            meter.update(run, 1.0, 3_000_000)
        screen = Console(width=columns, file=io.StringIO(), color_system=None)
        with screen.capture() as shown:
            screen.print(meter._bar.get_renderable())
    line, *rest = shown.get().splitlines()
    assert rest == []
    assert len(line.rstrip()) <= columns
    assert "\u2026" not in line
    assert re.search(
        r"1000 of 2000 runs, left \d+:\d\d:\d\d$|1000 of 2000 runs, left -:--:--$", line
    )
    assert ("packets/s" in line) == (columns >= 80)
    assert ("50000.0 of 100000 s simulated" in line) == (columns >= 120)


def test_packets_are_counted_from_the_start(small: Path) -> None:
    """The count includes the warm-up, on every link."""
    reports: list[tuple[float, int]] = []
    tree = Draft.read(small).set(["duration=2000s", "warmup=1000s"]).tree
    parse(tree).simulate(lambda share, packets: reports.append((share, packets)))
    assert len(reports) > 10
    assert reports == sorted(reports)
    rate = reports[-1][1] / (reports[-1][0] * 2000)
    assert 400 < rate < 700, f"{rate} packets per simulated second at 5 Mbit/s"
