"""The command: its output for people and for programs, and its exit codes."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from conftest import EXAMPLES, SMALL, Command
from sojourn.cli.list import KINDS
from sojourn.result.folders import FILES
from sojourn.scenario.draft import Draft, canonical

PROGRAM = Path(sys.executable).with_name("sojourn")


def ok(result: tuple[int, str, str]) -> str:
    """Return the standard output of a command that succeeds without messages."""
    code, out, err = result
    assert (code, err) == (0, "")
    return out


def test_version(sojourn: Command) -> None:
    """`--version` and `version` print the same."""
    assert ok(sojourn("--version")) == f"sojourn {sj.__version__}\n"
    assert sj.__version__ in ok(sojourn("--version", "--"))


def test_help_names_every_command(sojourn: Command) -> None:
    """`--help` and no arguments list all commands."""
    for arguments in ([], ["--help"], ["-h"]):
        out = ok(sojourn(*arguments))
        for command in ("list", "run", "compare", "replay"):
            assert re.search(rf"^  {command} ", out, re.MULTILINE)


def test_list_shows_all_and_one(sojourn: Command) -> None:
    """Kinds, names, aliases; a dash for an underscore; any case."""
    out = ok(sojourn("list"))
    for name in ("droptail", "fq_codel", "newreno", "transfers"):
        assert name in out
    for arguments in (["codel"], ["disciplines", "codel"], ["CoDel"]):
        out = ok(sojourn("list", *arguments))
        for word in ("target", "interval", "5ms", "100ms", "RFC 8289", "duration"):
            assert word in out
    assert ok(sojourn("list", "FQ-CoDel")).startswith("fq_codel")
    assert ok(sojourn("list", "taildrop")).startswith("droptail")
    both = ok(sojourn("list", "xcp"))
    assert both.startswith("xcp: explicit control protocol")
    assert both.endswith("sojourn list tcp xcp shows the entry of tcp.\n")
    assert json.loads(ok(sojourn("list", "xcp", "--json")))["also"] == ["tcp"]
    assert "codel-vs-drr" in ok(sojourn("list", "papers"))
    assert "004-C13" in ok(sojourn("list", "codel-vs-drr"))


def test_list_has_the_presets_with_the_values_that_a_scenario_gets(sojourn: Command) -> None:
    """`linux_cubic` and the others, as JSON and as text."""
    listed = {one["name"]: one for one in json.loads(ok(sojourn("list", "tcp", "--json")))}
    presets = {name: one for name, one in listed.items() if name.startswith("linux_")}
    assert {"linux_bbr", "linux_cubic", "linux_dctcp", "linux_htcp", "linux_reno"} <= set(presets)
    for name, one in presets.items():
        flow = {"name": "one", "path": ["up"], "tcp": name}
        tree = {"duration": "1s", "links": {"up": {"rate": "1mbit"}}, "flows": [flow]}
        taken = canonical(tree)["flows"][0]["tcp"]
        assert taken["name"] == one["tcp"]
        rfc = listed[one["tcp"]]["values"]["rfc"]
        set_here = {
            row["name"]: row["value"]
            for row in one["params"]
            if row["value"] not in ("auto", rfc[row["name"]])
        }
        assert {"profile", "rack", "header"} <= set(set_here)
        assert {key: str(taken[key]).replace("True", "true").replace("False", "false")
                for key in set_here} == set_here  # fmt: skip
    assert "alias of cubic with profile = linux" in ok(sojourn("list", "linux_cubic"))


def test_list_of_a_parameter_names_what_has_it(sojourn: Command) -> None:
    """With default and description; a kind limits it."""
    out = ok(sojourn("list", "target"))
    assert out.startswith("target is a parameter of:")
    assert "codel, cobalt, drr_codel, wfq_codel, fq_codel" in out
    assert "Target queueing delay: acceptable minimum over an interval." in out
    owners = json.loads(ok(sojourn("list", "tcp", "target", "--json")))["owners"]
    assert {one["name"] for one in owners} == {"ledbat", "ledbatpp", "swift"}
    assert sojourn("list", "sources", "target")[0] == 2


def test_list_as_json(sojourn: Command) -> None:
    """JSON has the tables themselves."""
    everything = json.loads(ok(sojourn("list", "--json")))
    assert list(everything) == list(KINDS)
    red = json.loads(ok(sojourn("list", "red", "--json")))
    assert red["kind"] == "disciplines"
    assert {"name", "aliases", "kind", "value", "range", "symbol", "about"} == set(red["params"][0])
    assert "codel-vs-drr" in [
        p["name"] for p in json.loads(ok(sojourn("list", "papers", "--json")))
    ]


def test_list_shows_classes_in_python(sojourn: Command) -> None:
    """A class has its own and the common parameters; an unknown one has the nearest name."""
    for name, own, common in (
        ("examples/my_aqm.py:HeadDrop", "target", "limit"),
        ("examples/my_control.py:DelayTarget", "gain", "compiled"),
        ("examples/my_source.py:Game", "pause", "stop"),
    ):
        out = ok(sojourn("list", name))
        assert own in out
        assert common in out
    one = json.loads(ok(sojourn("list", "examples/my_source.py:Game", "--json")))
    assert (one["kind"], one["params"][0]["value"]) == ("sources", "33ms")
    for arguments, text in (
        (["examples/my_aqm.py:HeadDrp"], 'did you mean "HeadDrop"?'),
        (["tcp", "examples/my_aqm.py:HeadDrop"], 'has no CongestionControl "HeadDrop"'),
        (["metrics", "examples/my_aqm.py:HeadDrop"], "list: unknown name"),
        (["none.py:X"], "none.py: No such file"),
    ):
        status, _, error = sojourn("list", *arguments)
        assert status == 2
        assert text in error


def test_list_shows_metrics(sojourn: Command) -> None:
    """The list has unit and source; a name gives the full entry."""
    out = ok(sojourn("list", "metrics"))
    for word in ("jain_index", "bit/s", "paper hred, IV.B", "response_time_s"):
        assert word in out
    one = ok(sojourn("list", "response_time_s"))
    assert one.startswith("response_time_s(")
    assert "unit: s;" in one
    assert "paper hred" in one
    summary = json.loads(ok(sojourn("list", "metrics", "afct_s", "--json")))
    assert (summary["kind"], summary["unit"]) == ("metrics", "s")


def test_run_prints_a_table(small: Path, sojourn: Command) -> None:
    """Links and groups, with the conditions."""
    out = ok(sojourn("run", small))
    for word in ("small", "seed 1", "up", "5mbit", "codel", "bulk (2)", "short", "call"):
        assert word in out
    assert "\x1b" not in out


def test_run_as_json_is_the_object_of_the_contract(small: Path, sojourn: Command) -> None:
    """JSON output is one object, equal to the library's summary."""
    summary = json.loads(ok(sojourn("run", small, "--json")))
    assert summary == json.loads(json.dumps(sj.simulate(small).summary))
    assert summary["sojourn"] == sj.__version__


def test_set_and_seed(small: Path, sojourn: Command) -> None:
    """Both appear in the canonical scenario."""
    options = ["--set", "up.qdisc=red", "--set", "up.qdisc.min_th=9p", "--seed", "5"]
    summary = json.loads(ok(sojourn("run", small, "--json", *options)))
    assert summary["scenario"]["seed"] == 5
    qdisc = summary["scenario"]["links"]["up"]["qdisc"]
    assert (qdisc["name"], qdisc["min_th"], qdisc["limit"]) == ("red", "9p", "100kB")


def test_run_writes_files_with_the_command_in_them(small: Path, sojourn: Command) -> None:
    """One call writes tables, summary and figure."""
    out, plot = small.with_name("out"), small.with_name("run.png")
    ok(sojourn("run", small, "--out", out, "--plot", plot, "--packet-log", "--flow", "bulk.0"))
    assert {p.name for p in out.iterdir()} == {*FILES} - {"queries.parquet"}
    assert plot.stat().st_size > 20_000
    assert pl.read_parquet(out / "packet_log.parquet").height > 100
    command = json.loads(pl.read_parquet_metadata(out / "fct.parquet")["sojourn.command"])
    assert command[0] == "sojourn"


def test_run_reads_json_too(small: Path, sojourn: Command) -> None:
    """A JSON scenario gives the same tree."""
    file = small.with_suffix(".json")
    file.write_text(json.dumps(Draft.read(small).tree))
    assert ok(sojourn("run", file, "--json")) == ok(sojourn("run", small, "--json"))


def test_compare_marks_the_best(sojourn: Command) -> None:
    """The table of the README, on shorter runs: rows per group, some marked best."""
    file = EXAMPLES / "home-uplink.toml"
    names = ["droptail", "red", "codel", "fq_codel"]
    options = ["--set", "duration=20s", "--seeds", "3"]
    out = ok(sojourn("compare", file, "--qdisc", ",".join(names), *options))
    head = next(line for line in out.splitlines() if "droptail" in line)
    assert head.split() == names
    rows = {line.strip().split("  ")[0]: line for line in out.splitlines() if line.strip()}
    for what in ("loss, %", "completion time, mean, ms", "goodput, total, Mbit/s"):
        assert what in rows
    cells = rows["one-way delay, 99 %, ms"].split("ms", 1)[1]
    delays = re.findall(r"(\d\S*)(?: ± \S+| \(.*?\)\*?)?(?:\s|$)", cells)
    assert len(delays) == 4
    assert float(delays[3]) == min(map(float, delays)) < float(delays[0]) / 3
    assert "* best of its row" in out


def test_compare_keeps_the_buffer_and_the_seed(small: Path, sojourn: Command) -> None:
    """Only the discipline differs; the original one keeps its parameters."""
    summary = json.loads(ok(sojourn("compare", small, "--qdisc", "fifo,codel", "--json")))
    assert set(summary) == {"sojourn", "table", "runs"}
    assert list(summary["runs"]) == ["droptail", "codel"]
    for run in summary["runs"].values():
        assert run["scenario"]["links"]["up"]["qdisc"]["limit"] == "100kB"
        assert run["sojourn"] == sj.__version__
    assert summary["runs"]["codel"]["links"] == sj.simulate(small).summary["links"]
    one, other = (run["scenario"] for run in summary["runs"].values())
    one["links"]["up"]["qdisc"] = other["links"]["up"]["qdisc"]
    assert one == other


def test_compare_over_seeds(small: Path, sojourn: Command) -> None:
    """JSON has a list per discipline, from the scenario's seed on; the table names the seeds."""
    options = ["--qdisc", "red,codel", "--seeds", "3", "--seed", "7"]
    summary = json.loads(ok(sojourn("compare", small, *options, "--json")))
    assert [run["scenario"]["seed"] for run in summary["runs"]["red"]] == [7, 8, 9]
    out = ok(sojourn("compare", small, *options))
    assert "means over 3 seeds from 7, percentiles over all their values" in out
    assert re.search(r"\d ± \d", out)


def test_compare_writes_its_figure(small: Path, sojourn: Command) -> None:
    """The figure adds the series that it needs to the scenario."""
    plot = small.with_name("cmp.png")
    ok(sojourn("compare", small, "--qdisc", "red,codel", "--plot", plot))
    assert plot.stat().st_size > 20_000


def test_compare_on_a_chosen_link(small: Path, sojourn: Command) -> None:
    """`--link` chooses the link."""
    small.write_text(SMALL + '\n[links.down]\nrate = "1mbit"\n')
    options = ["--qdisc", "red", "--link", "down", "--set", "bulk.return_path=['down']", "--json"]
    summary = json.loads(ok(sojourn("compare", small, *options)))
    links = summary["runs"]["red"]["scenario"]["links"]
    assert (links["down"]["qdisc"]["name"], links["up"]["qdisc"]["name"]) == ("red", "codel")


def test_marks_in_names_are_printed(small: Path, sojourn: Command) -> None:
    """Brackets are text, not colours."""
    small.write_text(SMALL.replace('"small"', '"[red]x[/red]"'))
    assert "[red]x[/red]" in ok(sojourn("run", small))


# ---- what only a process shows ----------------------------------------------------------------


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Return a scenario that runs for hours."""
    path = tmp_path / "long.toml"
    path.write_text(SMALL.replace('"3s"', '"900000s"'))
    return path


@pytest.mark.parametrize(
    "arguments", [["run"], ["compare", "--qdisc", "red,codel,sfq", "--seeds", "3"]]
)
def test_ctrl_c_stops_at_once_and_cleanly(arguments: list[str], long: Path) -> None:
    """Exit code 130, one line, no traceback, whatever the number of threads."""
    command = [str(PROGRAM), *arguments, str(long)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        pressed = time.monotonic()
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - pressed < 2
    assert (process.returncode, out, err) == (130, "", "sojourn: interrupted\n")


def on_terminal(command: list[Any], until: bytes, limit_s: float = 20) -> bytes:
    """Run `command` on a terminal until it has shown `until`, then press Ctrl-C."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], [str(word) for word in command])
    seen, pressed, end = b"", False, time.monotonic() + limit_s
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # the other side has closed it
                break
        if until in seen and not pressed:
            os.write(terminal, b"\x03")
            pressed = True
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    return seen


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_long_run_shows_a_bar_on_a_terminal(long: Path) -> None:
    """Simulated time and time left, after a second; Ctrl-C still ends the run."""
    seen = on_terminal([PROGRAM, "run", long], b"simulated")
    assert b"of 900000 s simulated" in seen
    assert b"left" in seen
    assert b"Traceback" not in seen


def test_closed_pipe_is_no_error() -> None:
    """`sojourn list --json | head -1` ends without an error."""
    with subprocess.Popen(
        [PROGRAM, "list", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_full_disk_is_one_line(small: Path) -> None:
    """Standard output that cannot be written gives one line."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "run", small, "--json"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"sojourn: ")
    assert done.stderr.count(b"\n") == 1


def test_colour_only_on_a_terminal_that_wants_it(small: Path) -> None:
    """Piped output has no colour, and NO_COLOR is respected on a terminal."""
    options = ["--qdisc", "droptail,fq_codel", "--seeds", "3"]
    command = [str(PROGRAM), "compare", str(small), *options]
    piped = subprocess.run(command, capture_output=True, check=True)
    assert b"\x1b" not in piped.stdout + piped.stderr
    for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        environment |= {"TERM": "xterm-256color", **variables}
        master, slave = pty.openpty()
        subprocess.run(command, stdout=slave, check=True, env=environment)
        os.close(slave)
        seen = os.read(master, 65536)
        os.close(master)
        assert (b"32m" in seen) == coloured  # green


def test_a_constant_rate_over_tcp_is_a_stream(sojourn: Command, tmp_path: Path) -> None:
    """It has a goodput and timeouts, but no completed transfers."""
    file = tmp_path / "video.toml"
    file.write_text("""duration = "10s"
    links.up = { rate = "1mbit" }
    [[flows]]
    name = "video"
    path = ["up"]
    rtt = "50ms"
    tcp = "cubic"
    source = { name = "cbr", rate = "600kbit", packet = "1kB" }
    """)
    last = ok(sojourn("run", str(file))).rstrip().splitlines()[-1]
    assert re.match(r"video +cbr +600 kbit .* 0 timeouts", last)
    table = ok(sojourn("compare", str(file), "--qdisc", "codel,droptail"))
    assert re.search(r"goodput, Mbit/s +0\.60 +0\.60", table)
    assert "completion" not in table
