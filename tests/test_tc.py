"""tc lines in scenarios, in Python and in the commands `sojourn tc` and `run --tc-stats`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import InputError
from sojourn.cli import main as cli

SCENARIO = """\
duration = "10s"
warmup = "1s"

[links.up]
rate = "10mbit"
delay = "10ms"
loss = 0.01
qdisc = "tc: fq_codel limit 500 target 20000"

[[flows]]
name = "bulk"
path = ["up"]
count = 2
"""

SQM = """\
config queue 'eth1'
\toption enabled '1'
\toption interface 'eth1'
\toption download '85000'
\toption upload '10000'
\toption qdisc 'fq_codel'
\toption script 'simplest.qos'
\toption egress_ecn 'NOECN'
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its exit code and outputs."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        out, error = capsys.readouterr()
        return code, out, error

    return call


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario whose discipline is a tc line."""
    path = tmp_path / "home.toml"
    path.write_text(SCENARIO)
    return path


def test_a_tc_line_is_a_discipline_everywhere(scenario: Path) -> None:
    """In files, models, comparisons and replays."""
    loaded = sj.load(scenario)
    result = sj.simulate(loaded)
    qdisc = result.scenario["links"]["up"]["qdisc"]
    assert (qdisc["name"], qdisc["limit"], qdisc["target"]) == ("fq_codel", "500p", "20ms")
    model = sj.Link(rate="10mbit", qdisc="tc: codel ecn")
    assert sj.tc.export(model).splitlines()[-1].endswith("handle 10: codel ecn")
    runs = sj.compare(scenario, ["tc: pie limit 200", "red=tc: red limit 400000 avpkt 1000"])
    assert list(runs)[1] == "red"
    assert len(runs) == 2


def test_a_tc_line_keeps_its_own_buffer(scenario: Path) -> None:
    """A comparison gives its buffer to disciplines that name none; a tc line always has one."""
    runs = sj.compare(scenario, {"linux": "tc: fq_codel", "ours": "codel"})
    limits = [
        next(iter(results)).scenario["links"]["up"]["qdisc"]["limit"] for results in runs.values()
    ]
    assert limits == ["10240p", "500p"]


def test_a_variant_of_linux_is_exported_without_false_notes() -> None:
    """It decides as Linux, so parameters at their defaults are no difference; others are."""
    assert sj.tc.export(sj.Pie(variant="linux")).startswith("tc qdisc replace ")
    assert sj.tc.export(sj.Pie()).startswith("# ")
    assert "# dq_weight = 0.5" in sj.tc.export(sj.Pie(variant="linux", dq_weight=0.5))


def test_parse_returns_models() -> None:
    """With Linux's defaults, and aliases of Python for keywords."""
    assert sj.tc.parse("codel limit 300 target 5000") == sj.CoDel(limit="300p", variant="linux")
    assert sj.tc.parse("tc: sfb") == sj.tc.parse("sfb increment 0.0005")
    assert isinstance(sj.tc.parse("pfifo limit 10"), sj.DropTail)
    with pytest.raises(InputError, match='fq_codel: unknown word "targt", did you mean "target"'):
        sj.tc.parse("fq_codel targt 5ms")


def test_links_from_a_script() -> None:
    """Shapers and netem become rate and delay."""
    script = "tc qdisc add dev eth0 root handle 1: netem delay 20ms rate 5mbit"
    link = sj.tc.links(script)["eth0"]
    assert (link.rate, link.delay) == ("5mbit", "20ms")
    assert sj.tc.links("tc qdisc add dev eth0 root pie", rate="1gbit")["eth0"].rate == "1gbit"
    with pytest.raises(InputError, match="eth0: no qdisc limits its rate"):
        sj.tc.links("tc qdisc add dev eth0 root pie")
    with pytest.raises(InputError, match=r"behind cake's shaper \(bandwidth 9mbit\)"):
        sj.tc.links("tc qdisc add dev eth0 root cake bandwidth 9mbit")


def test_import_writes_links(run: Run, tmp_path: Path) -> None:
    """The TOML is a scenario, and loads."""
    script = tmp_path / "setup.sh"
    script.write_text(
        "#!/bin/sh\nDEV=eth0 # a comment\n"
        "tc qdisc del dev $DEV root 2>/dev/null || true\n"
        "tc qdisc add dev $DEV root handle 1: htb default 10\n"
        "tc class add dev $DEV parent 1: classid 1:10 htb rate 20mbit \\\n  ceil 20mbit\n"
        "tc qdisc add dev $DEV parent 1:10 handle 10: fq_codel memory_limit 4mb noecn\n"
        "tc filter add dev $DEV parent 1: protocol ip u32 match ip dport 22 0xffff flowid 1:10\n"
    )
    code, out, error = run("tc", "import", str(script))
    assert (code, error) == (0, "")
    assert "# lost: memory_limit 4194304" in out
    assert "# These are links only, without traffic. `sojourn new uplink line.toml`" in out
    flow = '\n[[flows]]\nname = "bulk"\npath = ["eth0"]\n'
    whole = tmp_path / "whole.toml"
    whole.write_text('duration = "1s"\n' + out + flow)
    canonical = sj.simulate(sj.load(whole)).scenario["links"]["eth0"]
    assert (canonical["rate"], canonical["qdisc"]["ecn"]) == ("20mbit", False)
    code, _, error = run("tc", "import", str(script), "--strict")
    assert code == 2
    assert "memory_limit" in error


def test_import_of_sqm(run: Run, tmp_path: Path) -> None:
    """A queue with a script of one queue is two links; simple.qos has three classes."""
    path = tmp_path / "sqm"
    path.write_text(SQM)
    code, out, _ = run("tc", "import", str(path), "--json")
    links = json.loads(out)
    assert code == 0
    assert [(one["dev"], one["rate"]) for one in links] == [
        ("eth1", "10mbit"),
        ("ifb4eth1", "85mbit"),
    ]
    assert links[0]["qdisc"]["ecn"] is False
    path.write_text(SQM.replace("simplest.qos", "simple.qos"))
    code, out, _ = run("tc", "import", str(path), "--json")
    (first, *_) = json.loads(out)
    assert (code, first["qdisc"]["name"], len(first["qdisc"]["children"])) == (0, "htb", 1)
    assert list(first["classes"]) == ["1:1", "1:11", "1:12", "1:13"]
    path.write_text(SQM.replace("'10000'", "'10mbit'"))
    code, _, error = run("tc", "import", str(path))
    assert code == 2
    assert "eth1: option upload: write the rate in kbit/s" in error


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["import", "missing.sh"], "missing.sh: no such file"),
        (["import", "tc qdisc add dev eth0 root fq_codle"], 'did you mean "fq_codel"'),
        (["import", "echo hello"], "there is no qdisc of a device"),
        (["import", "tc qdisc add dev eth0 root pie", "--rate", "10"], "--rate: "),
        (["import", "tc qdisc add dev eth0 root pie", "--class", "x"], "is not a handle"),
        (["import", '[{"kind": "fq_codel", "options": {"limit": "x"}}]'], "fq_codel.limit: "),
        (["import", "[ {]"], "not valid JSON"),
        (["export", "wfq"], "wfq: Linux has no qdisc for wfq"),
        (["export", "cdoel"], 'did you mean "codel"'),
        (["export", "codel", "--dev", "eth0; reboot"], "write the name of a device"),
        (["export", "missing.toml"], "missing.toml: no such file"),
        (["export", "codel limit 1k"], "codel.limit: "),
        (["export", "red", "--strict"], "limit = 1000p: tc counts bytes"),
        (["diff", "codel", "cdoel"], 'did you mean "codel"'),
        (["diff", "tc: netem delay 1ms", "codel"], "is a property of a link"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: list[str], answer: str) -> None:
    """With exit code 2 and no traceback."""
    code, out, error = run("tc", *arguments)
    assert (code, out) == (2, "")
    assert answer in error
    assert len(error.splitlines()) == 1


def test_export_of_a_scenario(run: Run, scenario: Path) -> None:
    """A link is netem, htb and the qdisc; comments name what differs."""
    code, out, _ = run("tc", "export", str(scenario), "--dev", "wan0")
    assert code == 0
    assert out.splitlines() == [
        "# link up",
        "# loss: netem loses packets before the queue, sojourn after it",
        "# netem emulates the path; leave it out on a real line (--no-netem)",
        "tc qdisc replace dev wan0 root handle 1: netem limit 10000 delay 10ms loss 1%",
        "tc qdisc replace dev wan0 parent 1:1 handle 2: htb default 1",
        "tc class replace dev wan0 parent 2: classid 2:1 htb rate 10mbit",
        "tc qdisc replace dev wan0 parent 2:1 handle 10: fq_codel limit 500 target 20ms",
    ]
    back = sj.tc.imported(out)
    assert [back[0][key] for key in ("rate", "delay", "loss")] == ["10mbit", "10ms", 0.01]
    assert back[0]["qdisc"] == {
        "name": "fq_codel",
        "limit": "500p",
        "target": "20ms",
        "variant": "linux",
    }


def test_export_for_a_real_line(run: Run, scenario: Path) -> None:
    """It has its own delay and loss."""
    code, out, _ = run("tc", "export", str(scenario), "--no-netem")
    assert code == 0
    assert out.splitlines() == [
        "# link up",
        "tc qdisc replace dev eth0 root handle 1: htb default 1",
        "tc class replace dev eth0 parent 1: classid 1:1 htb rate 10mbit",
        "tc qdisc replace dev eth0 parent 1:1 handle 10: fq_codel limit 500 target 20ms",
    ]


def test_export_names_what_linux_cannot_do(run: Run) -> None:
    """One comment per parameter."""
    code, out, _ = run("tc", "export", "codel(variant=ns2_v1, limit=300kB)")
    assert code == 0
    assert "# variant = ns2_v1: Linux has the rules of RFC 8289 only" in out
    assert "# limit = 300kB: the nearest value of tc is 198 packets" in out


def test_export_notes_the_variant(run: Run, scenario: Path) -> None:
    """A note is no refusal: the command configures Linux as intended."""
    note = '# note: this is fq_codel with variant = "rfc", which Linux does not have; '
    simulate = '"tc: fq_codel limit 9" simulates Linux'
    for strict in ([], ["--strict"]):
        code, out, _ = run("tc", "export", "fq_codel(limit=9p)", *strict)
        assert (code, out.splitlines()[0]) == (0, note + simulate)
    assert run("tc", "export", "tc: fq_codel limit 9")[1].startswith("tc qdisc ")
    assert run("tc", "export", "codel(variant=ns2_v1)")[1].startswith("# variant = ns2_v1: ")
    file = scenario.with_name("plain.toml")
    file.write_text(scenario.read_text().replace("tc: fq_codel limit 500 target 20000", "sfq"))
    first, second, *_ = run("tc", "export", str(file))[1].splitlines()
    assert first.startswith('# note: link up: this is sfq with variant = "paper", which')
    assert second == "# link up"


def test_export_of_a_file_with_another_ending(run: Run) -> None:
    """It is answered as a file, not with the names of all disciplines."""
    code, _, error = run("tc", "export", "cable.tml")
    assert code == 2
    message = "is not a discipline, and the name of a scenario file must end in .toml or .json"
    assert error == f"sojourn: cable.tml: {message}\n"


def test_diff(run: Run) -> None:
    """Exit code 1 if there are differences, as of diff."""
    code, out, _ = run("tc", "diff", "codel limit 100 target 20ms", "codel(limit=100p)")
    assert code == 1
    assert "target" in out
    assert "20ms" in out
    code, out, _ = run("tc", "diff", "codel limit 100", "codel(limit=100p, variant=linux)")
    assert (code, out) == (0, "no difference\n")
    code, out, _ = run("tc", "diff", "tc: pie", "codel", "--json")
    assert code == 1
    assert json.loads(out)["name"] == ["pie", "codel"]


def test_statistics_look_like_those_of_tc(run: Run, scenario: Path) -> None:
    """As text and as JSON; packets are conserved."""
    code, out, _ = run("run", str(scenario), "--tc-stats")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == (
        "qdisc fq_codel 1: dev up root refcnt 2 limit 500p flows 1024 quantum 1514 target 20ms "
        "interval 100ms memory_limit 32Mb ecn drop_batch 64 "
    )
    assert lines[1].startswith(" Sent ")
    assert " pkt (dropped " in lines[1]
    assert lines[2].startswith(" backlog ")
    code, out, _ = run("run", str(scenario), "--tc-stats", "--json")
    (one,) = json.loads(out)
    assert one["kind"] == "fq_codel"
    assert one["options"]["limit"] == 500
    links: dict[str, Any] = sj.simulate(sj.load(scenario)).summary["links"]
    assert (one["packets"], one["drops"]) == (
        links["up"]["departed_packets"],
        links["up"]["dropped_packets"],
    )


def test_statistics_of_a_discipline_that_linux_lacks(run: Run, scenario: Path) -> None:
    """Its own name, without words."""
    code, out, _ = run("run", str(scenario), "--qdisc", "wfq", "--tc-stats")
    assert code == 0
    assert out.startswith("qdisc wfq 1: dev up root refcnt 2")
