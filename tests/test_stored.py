"""Stored results, comparisons and reports are checked when they are read: file, field, reason."""

import io
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from conftest import SMALL, Command
from mutation import at
from readers import WHOLE
from sojourn.sweeps import store
from support.link_reports import report
from support.refusals import one_line

FIELDS: list[tuple[tuple[Any, ...], Any, str]] = [
    (("scenario",), 5, "scenario: expected object, got int"),
    (("scenario", "duration"), "fast", 'scenario.duration: "fast"'),
    (("scenario", "links", "up", "rate"), "10mbps", 'scenario.links.up.rate: "10mbps" is ambig'),
    (("scenario", "flows", 0, "path"), ["nowhere"], "scenario.flows.bulk.path.0: unknown link"),
    (("scenario", "links", "up", "qdisc"), {"name": "q.py:X", "limit": []}, "scenario.links.up.q"),
    (("links", "up", "utilisation"), "full", "links.up.utilisation: expected float or null"),
    (("links", "up", "dropped_packets"), -1, "links.up.dropped_packets: expected int >= 0"),
    (("links", "up", "own"), {}, "links.up: expected bool or int"),
    (("links",), {}, "links.0: does not belong to the scenario"),
    (("flows", 0, "rtt_s"), None, "flows.0.rtt_s: expected float, got null"),
    (("flows", 0, "group"), "nobody", "flows.bulk.0: does not belong to the scenario"),
    (("flows", 1), 3, "flows.1: expected object, got int"),
    (("live",), {"warnings": [5]}, "live.warnings.0: expected str, got int"),
]
"""A path of summary.json, a value, and the message about it."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a result."""
    folder = tmp_path_factory.mktemp("stored")
    sj.simulate(WHOLE).save(folder)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder of a result."""
    for path in stored.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_no_value_of_a_summary_is_read_unchecked(folder: Path) -> None:
    """Each value of links and flows is removed once; the message names it."""
    path = folder / "summary.json"
    whole = json.loads(path.read_text())
    places: list[tuple[Any, ...]] = [("links", "up", key) for key in whole["links"]["up"]]
    places += [("flows", i, key) for i, flow in enumerate(whole["flows"]) for key in flow]
    optional = {"started", "unfinished", "refused"}
    for *way, key in places:
        tree = json.loads(json.dumps(whole))
        del at(tree, way)[key]
        path.write_text(json.dumps(tree))
        if key in optional:
            sj.explain(sj.load_result(folder))
            continue
        with pytest.raises(sj.InputError) as refused:
            pytest.fail(f"{key}: {sj.load_result(folder)}")
        assert str(refused.value).startswith(f"{path}: {way[0]}.")
        assert str(refused.value).endswith(f"{key}: is missing") or key == "kind"


@pytest.mark.parametrize(("way", "value", "message"), FIELDS)
def test_a_wrong_field_of_a_summary_is_named(
    way: tuple[Any, ...], value: Any, message: str, folder: Path, sojourn: Command
) -> None:
    """By every command that reads a result."""
    path = folder / "summary.json"
    tree = json.loads(path.read_text())
    at(tree, way[:-1])[way[-1]] = value
    path.write_text(json.dumps(tree))
    one_line(sojourn("explain", folder), f"{path}: {message}")
    one_line(sojourn("results", folder), f"{path}: {message}")
    one_line(sojourn("plot", folder, "--out", folder / "x.png"), f"{path}: {message}")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"sojourn": "\xe5", "links": {}, "scenario": {}}', "holds no run"),
        (b"", "holds no run"),
        (b'{"a":' * 9999, "holds no run"),
    ],
)
def test_bytes_that_are_not_json_are_refused(
    raw: bytes, message: str, folder: Path, sojourn: Command
) -> None:
    """By the command, which then finds no result, and by the function."""
    path = folder / "summary.json"
    path.write_bytes(raw)
    one_line(sojourn("explain", folder), message)
    with pytest.raises(sj.InputError, match=r"summary\.json: "):
        sj.load_result(folder)


TABLES: list[tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    ("fct", lambda frame: frame.drop("bytes"), "column bytes: is missing"),
    ("fct", lambda frame: frame.with_columns(start_s=pl.lit("x")), "column start_s: String is not"),
    ("fct", lambda frame: frame.with_columns(start_s=-1.0), "column start_s: has a value that is"),
    ("fct", lambda frame: frame.with_columns(flow=pl.lit("no")), 'column flow: "no" does not be'),
    ("queries", lambda frame: frame.drop("flow"), "column flow: is missing"),
    (
        "series",
        lambda frame: frame.filter(pl.col("kind") != "link"),
        "column name: the result has other links",
    ),
    ("series", lambda frame: frame[::-1], "column time_s: does not ascend"),
    (
        "series",
        lambda frame: frame.drop("queue_bytes"),
        "column queue_bytes: is missing for",
    ),
    (
        "group_series",
        lambda frame: frame.with_columns(kind=pl.lit("x")),
        'column kind: "x" does not',
    ),
    ("delays", lambda frame: frame.with_columns(name=pl.lit("x")), 'column name: "x" does not be'),
    ("delays", lambda frame: frame.drop("count"), "column count: is missing"),
    ("packet_log", lambda frame: frame.with_columns(fate=pl.lit("x")), 'column fate: "x" does'),
    ("packet_log", lambda frame: frame.with_columns(left_s=None), "column left_s: "),
]
"""Name of a table, a change, and the message about it."""


@pytest.mark.parametrize(("table", "change", "message"), TABLES)
def test_a_wrong_column_is_named(
    table: str, change: Callable[[pl.DataFrame], pl.DataFrame], message: str, folder: Path,
    sojourn: Command,
) -> None:  # fmt: skip
    """Missing columns, types, names of flows, times."""
    path = folder / f"{table}.parquet"
    meta = {k: v for k, v in pl.read_parquet_metadata(path).items() if k.startswith("sojourn.")}
    change(pl.read_parquet(path)).write_parquet(path, metadata=meta)
    one_line(sojourn("explain", folder), f"{path}: {message}")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sojourn.schema", "2", 'metadata sojourn.schema: "2" is not "1"'),
        ("sojourn.command", "[5]", "metadata sojourn.command.0: expected str, got int"),
        ("sojourn.command", "[" * 9999, "metadata sojourn.command: tables are nested too deeply"),
    ],
)
def test_wrong_metadata_is_named(
    key: str, value: str, message: str, folder: Path, sojourn: Command
) -> None:
    """The schema of another version, and a command line that is none."""
    path = folder / "fct.parquet"
    meta = {k: v for k, v in pl.read_parquet_metadata(path).items() if k.startswith("sojourn.")}
    pl.read_parquet(path).write_parquet(path, metadata={**meta, key: value})
    one_line(sojourn("explain", folder), f"{path}: {message}")


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (("spec", "up", "rate"), 5, "spec.up.rate: 5 has no unit"),
        (("spec", "up"), [], "spec: expected object, got array"),
        (("links", "up", "sojourn_p99_s"), "x", "links.up.sojourn_p99_s: expected float or null"),
        (("links", "side"), {}, 'links: "side" is not in spec'),
        (("links", "s" * 9999), {}, f'links: "{"s" * 60}..." (9999 characters) is not in spec'),
        (("links", "down"), {}, "links.down.arrived_packets: is missing"),
        (("warnings",), [3], "warnings.0: expected str, got int"),
    ],
)
def test_a_wrong_field_of_a_report_is_named(
    way: tuple[Any, ...], value: Any, message: str, tmp_path: Path, sojourn: Command
) -> None:
    """The report of `link --json`."""
    path, tree = tmp_path / "link.json", json.loads(json.dumps(report()))
    at(tree, way[:-1])[way[-1]] = value
    path.write_text(json.dumps(tree, indent=2))
    one_line(sojourn("explain", path), f"{path}: {message}")


def test_notes_indexes_and_reports_run_no_code(tmp_path: Path, sojourn: Command) -> None:
    """Also where a change of the scenario names a class."""
    marker, code = tmp_path / "ran", tmp_path / "evil.py"
    code.write_text(f"open({str(marker)!r}, 'w')\nclass X: pass\n")
    qdisc = {"name": f"{code}:X"}
    small, out, runs = tmp_path / "small.toml", tmp_path / "out", tmp_path / "runs"
    small.write_text(SMALL.replace('"3s"', '"1500ms"'))
    sj.compare(small, ["red", "codel"], out=out)
    sj.sweep(small, {"up.qdisc": ["red", "codel"]}, out=runs)
    changes = [{"at": "1s", "links": {"up": {"qdisc": qdisc}}}]
    for path in (out / "comparison.json", *runs.glob("_sweep*.json")):
        tree = json.loads(path.read_text())
        tree["scenario"]["changes"] = changes
        path.write_text(json.dumps(tree))
    link = tmp_path / "link.json"
    tree = json.loads(json.dumps(report()))
    tree["spec"]["up"]["qdisc"] = qdisc
    link.write_text(json.dumps(tree, indent=2))
    for words in (("explain", out), ("results", out), ("results", runs), ("explain", link),
                  ("plot", runs, "--y", "utilisation", "--out", tmp_path / "x.png")):  # fmt: skip
        assert sojourn(*words)[0] in (0, 2)
    assert not marker.exists()


@pytest.mark.parametrize("value", ["x", "1:2,0:1", "-1:2", "1:" + "9" * 19, 2.5])
def test_a_column_of_distributions_is_checked_when_a_store_is_read(
    value: object, tmp_path: Path
) -> None:
    """The message names the folder; it came when a percentile was shown, without."""
    sj.sweep(
        {**tomllib.loads(SMALL), "duration": "50ms", "warmup": "0s"},
        {"up.qdisc": ["red"]},
        out=tmp_path,
    )
    (part,) = tmp_path.glob("*.parquet")
    frame = pl.read_parquet(part).with_columns(pl.lit(value).alias("sojourn_values"))
    data = io.BytesIO()
    frame.write_parquet(data)
    part.unlink()
    (tmp_path / store._name(data.getvalue())).write_bytes(data.getvalue())
    with pytest.raises(sj.InputError, match="sojourn_values is not a column of distributions") as e:
        sj.results(tmp_path)
    assert str(tmp_path) in str(e.value)
