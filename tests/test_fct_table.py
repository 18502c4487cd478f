"""Tables of finished transfers: definitions of slowdown by hand, HPCC's format, bins, figure."""

import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from sojourn._util.units import size

TCP = {"name": "cubic", "packet": "1048B", "header": "48B"}


def line(source: Any, **more: Any) -> dict[str, Any]:
    """Return three hops of 1, 4 and 1 Gbit/s and 10, 20 and 30 us, and the same way back."""
    rates = {"h1-a": ("1gbit", "10us"), "a-b": ("4gbit", "20us"), "b-h2": ("1gbit", "30us")}
    links = {name: {"rate": rate, "delay": delay} for name, (rate, delay) in rates.items()}
    links |= {f"{name.split('-')[1]}-{name.split('-')[0]}": link for name, link in links.items()}
    flow = {
        "name": "one", "path": list(rates), "return_path": ["h2-b", "b-a", "a-h1"], "tcp": TCP,
        "source": source, "sender": "h1", "receiver": "h2",
    }  # fmt: skip
    return {"duration": "2s", "links": links, "flows": [flow], **more}


def table(definition: Any) -> dict[str, Any]:
    """Return the row of a lone transfer."""
    transfer = {"name": "transfers", "size": "2500B", "number": 1}
    return sj.fct_table(sj.simulate(line(transfer)), definition=definition).row(0, named=True)


def test_definitions_by_hand() -> None:
    """2500 B in packets of 1000 B and headers of 48 B; delays of 60 us each way."""
    wire = 8 * (2500 + 3 * 48)
    ends = {name: table(name) for name in ("alone", "hpcc", "pfabric", "homa")}
    hpcc = 120e-6 + 8000 * (1 / 1e9 + 1 / 4e9 + 1 / 1e9) + wire / 1e9
    assert ends["hpcc"]["ideal_s"] == pytest.approx(hpcc, abs=1e-12)
    pfabric = 120e-6 + (wire + 8 * 40) / 1e9 + 8 * 1048 / 4e9
    assert ends["pfabric"]["ideal_s"] == pytest.approx(pfabric, abs=1e-12)
    frames = [1048 + 38, 1048 + 38, 548 + 38]
    homa = 60e-6 + 8 * sum(frames) / 1e9 + 8 * frames[0] * (1 / 4e9 + 1 / 1e9)
    assert ends["homa"]["ideal_s"] == pytest.approx(homa, abs=1e-12)
    # An ack of 48 B on the way back, from the last byte at the receiver to the sender.
    way_back = 60e-6 + 8 * 48 * (1 / 1e9 + 1 / 4e9 + 1 / 1e9)
    for name in ("hpcc", "pfabric"):
        assert ends[name]["fct_s"] == pytest.approx(ends["alone"]["fct_s"] + way_back, abs=1e-12)
    assert ends["homa"]["fct_s"] == ends["alone"]["fct_s"]
    for row in ends.values():
        assert row["slowdown"] == pytest.approx(row["fct_s"] / row["ideal_s"])
        assert (row["sender"], row["receiver"], row["bytes"]) == ("h1", "h2", 2500)


def test_a_short_frame_has_the_smallest_size() -> None:
    """One byte of payload is a frame of 64 bytes with Homa, if the header is short enough."""
    case = line({"name": "transfers", "size": "1B", "number": 1})
    case["flows"][0]["tcp"] = {"name": "cubic", "packet": "1048B", "header": "20B"}
    row = sj.fct_table(sj.simulate(case), definition="homa").row(0, named=True)
    assert row["ideal_s"] == pytest.approx(60e-6 + 8 * 84 * (2 / 1e9 + 1 / 4e9), abs=1e-12)


def test_slowdowns_of_hpcc_are_at_least_one(tmp_path: Path) -> None:
    """Its scripts set smaller ones to 1; the file has the times as they are."""
    result = sj.simulate(line("poisson(load=300mbit, size=hadoop_hpcc)"))
    assert min(sj.fct_table(result, definition="hpcc")["slowdown"].to_list()) >= 1
    sj.write_fct(result, tmp_path / "fct.txt")
    rows = [line.split() for line in (tmp_path / "fct.txt").read_text().splitlines()]
    assert {row[0] for row in rows} == {"0b000101"}
    assert {row[1] for row in rows} == {"0b000201"}
    ends = [int(row[5]) + int(row[6]) for row in rows]
    assert ends == sorted(ends)


def test_the_usual_script_reads_the_file(tmp_path: Path) -> None:
    """The selection by destination port and time of HPCC's analysis, by awk and sort."""
    case = line("poisson(load=300mbit, size=hadoop_hpcc)")
    case["flows"].append({**case["flows"][0], "name": "incast", "receiver_port": 200})
    result = sj.simulate(case)
    sj.write_fct(result, tmp_path / "fct.txt")
    for group, port in (("one", 100), ("incast", 200)):
        program = f"$4=={port} && $6+$7<3000000000 {{print $7/$8<1 ? 1 : $7/$8, $5}}"
        out = subprocess.run(
            ["awk", program, str(tmp_path / "fct.txt")], capture_output=True, text=True, check=True
        ).stdout
        rows = sorted((int(n), float(slow)) for slow, n in map(str.split, out.splitlines()))
        frame = sj.fct_table(result, group, "hpcc").sort("bytes", "slowdown")
        assert [n for n, _ in rows] == frame["bytes"].to_list()
        assert [slow for _, slow in rows] == pytest.approx(frame["slowdown"].to_list(), rel=1e-4)
        bins = sj.slowdown_bins(result, group)
        assert bins["count"].sum() == len(rows)
        for k, row in enumerate(bins.iter_rows(named=True)):
            part = rows[k * len(rows) // 20 : (k + 1) * len(rows) // 20]
            slow = sorted(s for _, s in part)
            assert row["size_bytes"] == part[-1][0]
            for p in (50, 95, 99):
                expected = slow[math.floor(len(slow) * p / 100)]
                assert row[f"p{p}"] == pytest.approx(expected, rel=1e-4)


def test_tables_are_read_by_others(tmp_path: Path) -> None:
    """CSV and Parquet have the rows and types of the table."""
    result = sj.simulate(line("poisson(load=100mbit, size=20kB)"))
    frame = sj.fct_table(result)
    sj.write_fct(result, tmp_path / "fct.csv")
    sj.write_fct(result, tmp_path / "fct.parquet")
    assert pl.read_parquet(tmp_path / "fct.parquet").equals(frame)
    csv = pl.read_csv(tmp_path / "fct.csv", schema=frame.schema)
    assert csv.equals(frame)
    for path, definition, message in [
        ("fct.dat", "alone", "must end in"),
        ("fct.txt", "homa", "HPCC's format has the definition hpcc"),
    ]:
        with pytest.raises(sj.InputError, match=message):
            sj.write_fct(result, tmp_path / path, definition)  # type: ignore[arg-type]
    with pytest.raises(sj.InputError, match='definition: unknown "hppc", did you mean "hpcc"'):
        sj.fct_table(result, definition="hppc")  # type: ignore[arg-type]


def test_no_transfer_is_an_empty_table(tmp_path: Path) -> None:
    """With its columns; there is no figure of it."""
    result = sj.simulate(line("poisson(start=3s)"))
    assert sj.fct_table(result).height == 0
    assert sj.slowdown_bins(result).height == 0
    with pytest.raises(sj.InputError, match="there is no finished transfer"):
        sj.draw_slowdown({"none": result}, tmp_path / "none.svg")


def test_runs_are_put_together_and_drawn(tmp_path: Path) -> None:
    """One line per name; the sizes below the axis are the largest of the bins."""
    case = line("poisson(load=300mbit, size=hadoop_hpcc)")
    runs = [sj.simulate({**case, "seed": seed}) for seed in (1, 2)]
    both = sj.slowdown_bins(runs, bins=10)
    assert both["count"].sum() == sum(sj.fct_table(run).height for run in runs)
    counts = both["count"].to_list()
    assert max(counts) - min(counts) <= 1
    figure = sj.draw_slowdown(
        {"two seeds": runs, "one": runs[0]}, tmp_path / "slowdown.svg", percent=95, bins=10
    )
    drawn = figure.axes[0].lines
    assert [one.get_label() for one in drawn] == ["two seeds", "one"]
    assert np.array_equal(np.asarray(drawn[0].get_ydata()), both["p95"].to_numpy())
    assert figure.axes[0].get_xticklabels()[-1].get_text() == size(both["size_bytes"][-1])
    with pytest.raises(sj.InputError, match="percent: 90 is not one of 50, 95 and 99"):
        sj.draw_slowdown({"one": runs[0]}, percent=90)
    with pytest.raises(sj.InputError, match="bins: 0 is no whole number from 1 to 1000"):
        sj.slowdown_bins(runs, bins=0)
