"""Commands that beginners try first: each works, or says what to write instead."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn.scenario.draft import Draft, canonical

UP, DOWN = {"path": ["up"], "return_path": ["down"]}, {"path": ["down"], "return_path": ["up"]}


def both() -> dict[str, Any]:
    """Return a scenario with two links."""
    link = {"rate": "5mbit", "delay": "5ms", "qdisc": {"name": "droptail", "limit": "50kB"}}
    return {
        "duration": "2s",
        "links": {"up": link, "down": dict(link), "far": dict(link)},
        "flows": [{"name": "upload", **UP}, {"name": "download", **DOWN}],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of the scenario with two links."""
    path = tmp_path / "both.json"
    path.write_text(json.dumps(both()))
    return path


def test_compare_changes_every_link_that_is_given(file: Path, sojourn: Command) -> None:
    """Not the last one only; in `run` too."""
    command = ("compare", file, "--qdisc", "pie,codel", "--link", "up", "--link", "down")
    code, out, err = sojourn(*command, "--json")
    assert (code, err) == (0, "")
    for name, run in json.loads(out)["runs"].items():
        links = run["scenario"]["links"]
        assert [links[k]["qdisc"]["name"] for k in ("up", "down", "far")] == [
            name,
            name,
            "droptail",
        ]
    assert "disciplines of up and down differ" in sojourn(*command)[1]
    code, out, _ = sojourn("run", file, "--qdisc", "pie", "--link", "up", "--link", "far", "--json")
    links = json.loads(out)["scenario"]["links"]
    assert [links[k]["qdisc"]["name"] for k in ("up", "down", "far")] == ["pie", "droptail", "pie"]
    code, _, err = sojourn("compare", file, "--qdisc", "pie", "--link", "up", "--link", "don")
    assert code == 2
    assert '--link: unknown link "don", did you mean "down"?' in err
    with pytest.raises(sj.InputError, match='unknown link "don"'):
        sj.compare(both(), ["pie"], link="up", also=["don"])


@pytest.mark.parametrize("command", [("plot", "--out", "x.png"), ("results",), ("explain",)])
def test_a_folder_that_is_not_there_is_named(
    command: tuple[str, ...], tmp_path: Path, sojourn: Command
) -> None:
    """`plot nodir` does not ask for an option."""
    there = tmp_path / "no.dir"
    name, *more = command
    code, _, err = sojourn(name, there, *more)
    assert code == 2
    assert f"{there}: " in err
    assert "o such" in err
    if name != "explain":
        (tmp_path / "empty").mkdir()
        assert "there are no results" in sojourn(name, tmp_path / "empty", *more)[2]
        there.write_text("")
        assert "is a file, not a folder of results" in sojourn(name, there, *more)[2]


def test_named_scenarios_are_exported_to_tc(tmp_path: Path, sojourn: Command) -> None:
    """`tc export rrul` is the same as the export of its file."""
    devices = ("--dev", "up=eth0", "--dev", "down=ifb0")
    code, out, err = sojourn("tc", "export", "rrul", *devices)
    assert (code, err) == (0, "")
    (tmp_path / "rrul.json").write_text(json.dumps(Draft.read("rrul").tree))
    assert sojourn("tc", "export", tmp_path / "rrul.json", *devices)[1] == out
    code, _, err = sojourn("tc", "export", "rrull")
    assert code == 2
    assert 'or did you mean the scenario "rrul"?' in err


def test_traces_of_mahimahi_may_have_comments(tmp_path: Path, sojourn: Command) -> None:
    """Comments and empty lines are read over; other lines are refused with Mahimahi's rule."""
    path = tmp_path / "lte.trace"
    tree = both()
    tree["links"]["up"]["trace"] = str(path)
    path.write_text("# an LTE trace\n\n1\n2\n  # a pause\n40\n")
    assert canonical(tree)["links"]["up"]["trace"]["opportunities_ms"] == [1, 2, 40]
    path.write_text("# rates\nt_s,rate_bps\n0,1e6\n# later\n1,2e6\n")
    assert canonical(tree)["links"]["up"]["trace"]["rate_bps"] == [1_000_000, 2_000_000]
    for text, line in (("1\n2.5\n", 2), ("0.5\n1\n", 1), ("1\n\n# x\n2 3\n", 4)):
        path.write_text(text)
        with pytest.raises(sj.InputError, match=f"line {line}: .* one whole number of millisec"):
            canonical(tree)
    path.write_text("1 1500\n2 1500\n")
    with pytest.raises(sj.InputError, match="as Mahimahi has it, one whole number of millisec"):
        canonical(tree)


def test_a_file_of_sizes_that_is_missing_is_named(file: Path, sojourn: Command) -> None:
    """And points without shares are answered with the form of points."""
    size = "cdf(WebSearch_distribution.txt)"
    source = json.dumps({"name": "transfers", "size": size})
    code, _, err = sojourn("run", file, "--set", f"upload.source={source.replace(': ', ' = ')}")
    assert code == 2
    assert "flows.upload.source: WebSearch_distribution.txt: no such file" in err
    size = "cdf(10kB, 20kB)"
    code, _, err = sojourn(
        "run", file, "--set", "upload.source=transfers", "--set", f"upload.source.size={size}"
    )
    assert code == 2
    assert "upload.source.size: an empirical distribution is written cdf(a 0, b 0.5, c 1)" in err
    assert "or cdf(FILE)" in err


@pytest.mark.parametrize(
    ("qdisc", "limit"),
    [
        ("droptail(limit=300ms)", "187500B"),
        ({"name": "codel", "buffer": "0.3s"}, "187500B"),
        ("fq_codel(limit=300ms)", "187500B"),
        ("cake(memory_limit=300ms)", "187500B"),
        ("droptail(limit=1us)", "1514B"),
    ],
)
def test_a_buffer_may_be_a_time(qdisc: Any, limit: str) -> None:
    """It is the bytes that the link sends in it, at least a packet, like `--buffer`."""
    tree = both()
    tree["links"]["up"]["qdisc"] = qdisc
    assert canonical(tree)["links"]["up"]["qdisc"]["limit"] == limit
    tree["links"]["up"]["rate"] = "10mbit"
    assert canonical(tree)["links"]["up"]["qdisc"]["limit"] in ("375kB", "1514B")


def test_a_buffer_in_time_follows_the_rate_everywhere(file: Path, sojourn: Command) -> None:
    """In objects, comparisons and sweeps over rates."""
    queue = sj.DropTail(limit="100ms")
    assert queue.limit == "100ms"
    rows = sj.sweep(
        {**both(), "links": {**both()["links"], "up": {"rate": "5mbit", "qdisc": queue}}},
        {"up.rate": ["5mbit", "10mbit"]},
    )
    assert len(rows) == 2
    runs = sj.compare(both(), ["droptail(limit=100ms)", "codel(limit=200ms)"], link="up")
    limits = [r[0].scenario["links"]["up"]["qdisc"]["limit"] for r in runs.values()]
    assert limits == ["62500B", "125kB"]
    code, _, err = sojourn("run", file, "--set", "up.qdisc.limit=300msec")
    assert code == 2
    assert "up.qdisc.limit" in err
    with pytest.raises(sj.InputError, match="min_th"):
        sj.Red(min_th="5ms")


def test_no_flows_are_a_number_of_flows(sojourn: Command, file: Path) -> None:
    """A group with count 0 is left out, with its changes; below 0 the message allows 0."""
    tree = both()
    without = {**tree, "flows": tree["flows"][:1]}
    tree["flows"][1]["count"] = 0
    tree["changes"] = [
        {"at": "500ms", "join": ["download"]},
        {"at": "1s", "leave": ["download"], "links": {"up": {"rate": "4mbit"}}},
    ]
    without["changes"] = [{"at": "1s", "links": {"up": {"rate": "4mbit"}}}]
    assert canonical(tree) == canonical(without)
    assert sj.simulate(tree).summary["links"] == sj.simulate(without).summary["links"]
    assert sj.Flow(name="a", path=["up"], count=0).count == 0
    rows = sj.sweep(both(), {"download.count": [0, 1, 2]})
    assert rows["download.goodput_bps"].is_null().to_list() == [True, False, False]
    for count, message in ((-3, "from 0 up"), (2_000_001, "allowed: 0 to 2000000")):
        code, _, err = sojourn("run", file, "--set", f"upload.count={count}")
        assert code == 2
        assert message in err
    code, _, err = sojourn("run", file, "--set", "upload.count=0", "--set", "download.count=0")
    assert (code, "flows: there is no flow: every count is 0" in err) == (2, True)


def test_tables_of_a_run_are_written_as_csv(small: Path) -> None:
    """No column is nested: a list is text."""
    tree = {**Draft.read(small).tree, "sample": "100ms", "packet_log": True}
    tree["links"]["up"]["qdisc"] = "droptail(limit=4kB)"
    result = sj.simulate(tree)
    for table in ("flows", "links", "series", "group_series", "packet_log", "fct", "queries"):
        frame = result.frame(table)
        if not len(frame):
            continue
        back = pl.read_csv(io.StringIO(frame.write_csv()), infer_schema_length=None)
        assert back.shape == frame.shape
    text = result.frame("links")["consecutive_loss"][0]
    assert json.loads(text) == result.links["up"].consecutive_loss
    assert sum(json.loads(text)) > 0


def test_groups_have_the_numbers_of_their_flows(small: Path) -> None:
    """The same as the columns of a sweep, with the series and names of flows as before."""
    tree = {**Draft.read(small).tree, "sample": "100ms"}
    result = sj.simulate(tree)
    flows = [flow for flow in result.flows.values() if flow.group == "bulk"]
    bulk = result.groups["bulk"]
    assert bulk.flows == ["bulk.0", "bulk.1"]
    assert bulk.goodput_bps == sum(flow.goodput_bps for flow in flows)
    assert bulk.sent_packets == sum(flow.sent_packets for flow in flows)
    assert result.groups["call"].delay_p99_s == result.flows["call"].delay_p99_s
    assert result.groups["short"].completed == result.flows["short"].completed
    row = sj.compare(tree, ["codel"]).frame()
    for name, group in result.groups.items():
        for key, value in group.items():
            if key != "flows":
                assert row[f"{name}.{key}"][0] == value
    assert len(bulk.series.received_bytes) == len(result.time_s)


def test_recommend_counts_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar says how many settings are done, then how many tests of the answer."""
    from sojourn._util import progress
    from sojourn.recommendation import answer

    texts: list[str] = []

    class Recorded(progress.Steps):
        def step(self) -> None:
            super().step()
            texts.append(self.text())

    monkeypatch.setattr(answer, "Steps", Recorded)
    monkeypatch.setattr(answer, "visible", lambda: True)
    monkeypatch.setattr(progress, "PATIENCE_S", 1e9)
    sj.recommend("2mbit", "1mbit", "20ms", only="red,choke", progress=True)
    settings = [text for text in texts if text.endswith(" settings")]
    assert settings[:2] == ["1 of 8 settings", "2 of 8 settings"]
    tests = [text for text in texts if text.endswith(" final tests")]
    assert len(tests) > 10
    done, _, count = tests[-1].split()[:3]
    assert int(done) <= int(count)
    assert len(settings) + len(tests) == len(texts)


def test_demo_says_what_it_does() -> None:
    """Every step of the first `make demo` prints a line, and the long ones more than one."""
    root = Path(__file__).parent.parent
    plan = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for step in ("1 of 3: ", "2 of 3: ", "3 of 3: ", "simulating a home uplink"):
        assert step in plan
    assert "tail -n 1 target/make.log" in plan
