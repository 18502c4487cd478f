"""Bad input: exit code 2 and one line with the path of what is wrong, never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SMALL, Command
from support.refusals import one_line

# What is replaced in the small scenario, by what, and how the line starts after the file's name.
SCENARIOS: dict[str, tuple[str, str, str]] = {
    "misspelt top key": ("warmup", "warmpu", 'warmpu: unknown key "warmpu", did you mean "warmup"'),
    "misspelt link key": ("delay =", "dealy =", "links.up.dealy: unknown key"),
    "misspelt flow key": ("count =", "cuont =", "flows.bulk.cuont: unknown key"),
    "misspelt discipline": ('"codel"', '"cdoel"', "links.up.qdisc"),
    "misspelt parameter": ("target", "tagret", "links.up.qdisc.tagret: unknown parameter"),
    "misspelt tcp": ('"newreno"', '"newrneo"', "flows.bulk.tcp"),
    "tcp of the other profile": (
        '"newreno"',
        '"cubic", profile = "ns2"',
        "flows.bulk.tcp.profile",
    ),
    "parameter of another tcp": ('"newreno"', '"cubic", gamma = 1', "flows.bulk.tcp.gamma"),
    "marks for bbr": ('"newreno"', '"bbr", ecn = true', "flows.bulk.tcp.ecn"),
    "prr without sack": ('"newreno"', '"newreno", prr = true', "flows.bulk.tcp.prr"),
    "misspelt tcp parameter": ('packet = "1500B"', 'pakcet = "1500B"', "flows.bulk.tcp.pakcet"),
    "misspelt source": ('"transfers"', '"transfres"', "flows.short.source"),
    "misspelt source parameter": ("gap =", "gpa =", "flows.short.source.gpa"),
    "misspelt distribution": ("exponential", "exponentail", "flows.short.source.gap"),
    "discipline without a name": ('name = "codel", ', "", "links.up.qdisc.name: is missing"),
    "mbps": ("5mbit", "5mbps", 'links.up.rate: "5mbps" is ambiguous'),
    "Mbps": ("5mbit", "5Mbps", 'links.up.rate: "5Mbps" is ambiguous'),
    "rate without a unit": ('"5mbit"', "5000000", "links.up.rate: 5000000 has no unit"),
    "duration without a unit": ('"3s"', "3", "duration: 3 has no unit"),
    "size without a unit": ('"100kB"', '"100"', "links.up.qdisc.limit"),
    "wrong unit": ('"10ms"', '"10kB"', "links.up.delay"),
    "negative rate": ("5mbit", "-5mbit", 'links.up.rate: "-5mbit" is negative'),
    "negative duration": ('"3s"', '"-3s"', "duration"),
    "zero rate": ("5mbit", "0bit", "links.up.rate: 0bit is out of range"),
    "zero duration": ('"3s"', '"0s"', "duration: 0s is out of range"),
    "zero buffer": ("100kB", "0B", "links.up.qdisc.limit"),
    "negative flows": ("count = 2", "count = -1", "flows.bulk.count: -1 is not a whole number"),
    "zero packet": ('packet = "200B"', 'packet = "0B"', "flows.call.source.packet"),
    "huge count": ("count = 2", "count = 10000000000", "flows.bulk.count"),
    "count of two hundred digits": ("count = 2", f"count = {'9' * 200}", "flows.bulk.count"),
    "huge duration": ('"3s"', '"99999999999h"', "duration"),
    "fractional count": ("count = 2", "count = 2.5", "flows.bulk.count"),
    "negative seed": ("seed = 1", "seed = -1", "seed: -1 is not a whole number from 0 up"),
    "seed above 2^53": (
        "seed = 1",
        "seed = 9007199254740993",
        "seed: 9007199254740993 is out of range, allowed: 0 to 9007199254740992",
    ),
    "seed above 2^64": (
        "seed = 1",
        "seed = 18446744073709551617",
        "seed: 18446744073709551617 is out of range",
    ),
    "name that is infinite": ('name = "small"', "name = -inf", "name: -inf is not a finite"),
    "discipline in a list": ('name = "codel"', 'name = ["codel"]', 'links.up.qdisc.name: ["codel'),
    "size in a list": ('"100kB"', '["100kB"]', 'links.up.qdisc.limit: ["100kB"] is not a single'),
    "duration shorter than warm-up": ('warmup = "1s"', 'warmup = "4s"', "warmup: 4s is not"),
    "nan": ("count = 2", "count = nan", "flows.bulk.count"),
    "infinite seed": ("seed = 1", "seed = inf", "seed"),
    "nan where text is due": ('"5mbit"', "nan", "links.up.rate"),
    "flag where a time is due": ('"10ms"', "true", "links.up.delay"),
    "date where a time is due": ('"3s"', "2026-01-01", "duration"),
    "list where a table is due": ('{ name = "codel"', '[ "codel" ] #', "links.up.qdisc"),
    "text where a list is due": ('path = ["up"]', 'path = "up"', "flows.bulk.path"),
    "path to a missing link": ('path = ["up"]', 'path = ["pu"]', "flows.bulk.path.0: unknown link"),
    "empty path": ('path = ["up"]', "path = []", "flows.bulk.path: names no link"),
    "link crossed twice": ('path = ["up"]', 'path = ["up", "up"]', "flows.bulk.path.1"),
    "two flows of a name": ('name = "short"', 'name = "bulk"', "flows.1.name"),
    "flow without a name": ('name = "short"\n', "", "flows.1.name: is missing"),
    "name with a space": ('name = "short"', 'name = "sh ort"', "flows.1.name"),
    "rtt below the links": ('rtt = "30ms"', 'rtt = "5ms"', "flows.bulk.rtt"),
    "wrong way round": ("uniform(0s, 500ms)", "uniform(500ms, 0s)", "flows.bulk.source.start"),
    "bad tcp for a call": (
        '"200B" }',
        '"200B" }\ntcp = "rno"',
        "flows.call.tcp.name",
    ),
    "no links": ("[links.up]", "[lynx.up]", "lynx: unknown key"),
    "sample of nothing": ("seed = 1", 'sample = "0s"', "sample"),
    "too many samples": ('"3s"', '"90000s"\nsample = "1us"', "sample: 1us gives"),
    "text for a flag": ("seed = 1", 'packet_log = "maybe"', "packet_log"),
    "broken TOML": ("[links.up]", "[links.up", "Expected ']'"),
    "key given twice": ("seed = 1", "seed = 1\nseed = 2", "Cannot overwrite a value"),
    "value left out": ("seed = 1", "seed =", "Invalid value"),
}


@pytest.mark.parametrize("case", SCENARIOS)
def test_bad_scenario_is_refused_with_its_path(case: str, tmp_path: Path, sojourn: Command) -> None:
    """Each case changes one value of a valid scenario."""
    old, new, start = SCENARIOS[case]
    assert old in SMALL
    path = tmp_path / "bad.toml"
    path.write_text(SMALL.replace(old, new, 1))
    one_line(sojourn("run", path), f"{path}: {start}")


def test_bad_scenario_is_refused_alike_by_compare(small: Path, sojourn: Command) -> None:
    """Both commands read a scenario the same way."""
    small.write_text(SMALL.replace("5mbit", "5mbps"))
    one_line(sojourn("compare", small, "--qdisc", "red"), f"{small}: links.up.rate: ")


# The bytes of a file, its ending, and what the line says.
FILES: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", ".toml", "the file is empty"),
    "blank": (b" \n\n", ".toml", "the file is empty"),
    "binary": (b"name = 1\n\x7fELF\x00\xff\xfe", ".toml", "line 2: this is not a text file"),
    "other ending": (SMALL.encode(), ".yaml", "must end in .toml or .json"),
    "broken JSON": (b'{"duration": "3s",\n oops}', ".json", "line 2: "),
    "cut JSON": (b'{"duration"', ".json", "line 1: "),
    "key twice in JSON": (b'{"seed": 1, "seed": 2}', ".json", "seed: this key is given twice"),
    "JSON list": (b"[1, 2]", ".json", "is not a scenario"),
    "JSON without anything": (b"{}", ".json", "duration: is missing"),
    "NaN in JSON": (b'{"duration": NaN}', ".json", "duration: nan is not a finite number"),
    "null in JSON": (b'{"duration": null}', ".json", "duration: "),
    "huge number in JSON": (b'{"duration": "1s", "seed": 1' + b"0" * 5000 + b"}", ".json", ""),
    "deep JSON": (b'{"a":' * 100_000, ".json", "nested too deeply"),
    "deep TOML": (b"a = " + b"[" * 100_000, ".toml", "nested too deeply"),
    "half a letter": (b'{"name": "\\ud800", "duration": 1}', ".json", "duration: "),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_file_is_refused_with_its_name(case: str, tmp_path: Path, sojourn: Command) -> None:
    """A file that is not a scenario is refused by name."""
    raw, ending, part = FILES[case]
    path = tmp_path / f"file{ending}"
    path.write_bytes(raw)
    one_line(sojourn("run", path), f"{path}: ", part)


def test_missing_file_and_directory_are_refused(tmp_path: Path, sojourn: Command) -> None:
    """Unreadable paths are refused in one line."""
    one_line(sojourn("run", tmp_path / "no.toml"), "no.toml: no such file or directory")
    one_line(sojourn("run", tmp_path), f"{tmp_path}: is a directory")


def test_figure_on_a_directory_is_refused(small: Path, sojourn: Command) -> None:
    """A directory can have the name of a figure."""
    there = small.with_name("x.png")
    there.mkdir()
    one_line(sojourn("run", small, "--plot", there), f"{there}: is a directory")


# Arguments after `run small.toml`, and what the line says.
OPTIONS: dict[str, tuple[list[str], str]] = {
    "set nothing": (["--set", "up.qdisc"], "write it as KEY=VALUE"),
    "set a stranger": (["--set", "pu.qdisc=red"], '"pu" is not a link, flow or key'),
    "set a flow's slip": (["--set", "blk.count=3"], 'did you mean "bulk"'),
    "set an unknown key": (["--set", "up.qdsic=red"], "links.up.qdsic: unknown key"),
    "set an unknown flow": (["--set", "flows.shrot.rtt=1s"], 'did you mean "short"'),
    "set a flow out of range": (["--set", "flows.9.rtt=1s"], 'unknown flow "9"'),
    "set below a value": (["--set", "up.rate.x=1"], '"rate" is a single value'),
    "set tcp of a call": (["--set", "call.tcp.packet=500B"], "there is no tcp here"),
    "set an unknown discipline": (["--set", "up.qdisc=rde"], "links.up.qdisc"),
    "set a parameter of another law": (["--set", "up.qdisc.min_th=5p"], "links.up.qdisc.min_th"),
    "set a bad value": (["--set", "up.qdisc.target=5"], "links.up.qdisc.target: 5 has no unit"),
    "set nan": (["--set", "seed=nan"], "seed: "),
    "seed of words": (["--seed", "one"], "'--seed'"),
    "negative seed": (["--seed", "-1"], "seed: "),
    "unknown option": (["--ploy", "x.png"], "No such option"),
    "packet_log without a place": (["--packet-log"], "--packet-log"),
    "flow without a figure": (["--flow", "bulk.0"], "--flow"),
    "figure in no directory": (["--plot", "/no/where/x.png"], "/no/where/x.png: no such file"),
    "figure of an unknown kind": (["--plot", "x.gif"], "x.gif: the name must end in"),
    "output below a file": (["--out", "/dev/null/out"], "/dev/null/out: "),
    "output on a file": (["--out", "/dev/null"], "/dev/null: is not a directory"),
    "output where nothing can be": (["--out", "/proc/out"], "/proc/out: "),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_option_is_refused(case: str, small: Path, sojourn: Command) -> None:
    """Each case adds an option to a valid command."""
    options, part = OPTIONS[case]
    one_line(sojourn("run", small, *options), part)


# A law, what it is given, and how the line goes on after the path of the discipline.
LAWS: dict[str, tuple[str, list[str], str]] = {
    "thresholds the wrong way round": (
        "ared", ["min_th=20p", "max_th=10p"], "max_th: 10p is not above min_th (20p)"
    ),
    "thresholds in two units": (
        "feng_red", ["min_th=5kB", "max_th=9p"], "max_th: 9p is in another unit than min_th (5kB)"
    ),
    "bounds of max_p the wrong way round": (
        "sa_red", ["bottom=0.6"], "top: 0.5 is not above bottom (0.6)"
    ),
    "UDP as fast as the link": (
        "red_opt", ["udp_rate=5mbit"], "udp_rate: 5mbit leaves nothing of the link's 5mbit"
    ),
    "UDP in mbps": ("red_opt", ["udp_rate=1mbps"], 'udp_rate: "1mbps" is ambiguous'),
    "band outside the buffer": ("hred", ["max_th=200kB", "min_th=50kB"], "max_th: min_th 50"),
    "response time without a unit": ("hred", ["t_alpha=1"], "t_alpha: 1 has no unit"),
    "a controller that integrates nothing": (
        "pi", ["a=0.00001", "b=0.00002"], "a: 0.00001 is not above b (0.00002)"
    ),
    "half a design": ("pi", ["flows=10"], "rtt: is required if flows is given"),
    "half of the gains": ("api", ["a=0.1"], "b: is required if a is given"),
    "a queue as a time": ("rem", ["b_star=5ms"], 'b_star: "5ms" is not a size'),
    "more than the link": ("avq", ["gamma=1.5"], "gamma: 1.5 is out of range"),
    "delay without a unit": ("pie", ["target=15"], "target: 15 has no unit"),
    "a misspelt delay": ("pi2", ["tagret=15ms"], 'tagret: unknown parameter "tagret", did you me'),
    "a misspelt choice": ("sred", ["form=ful"], 'form: unknown choice "ful", did you mean "full"'),
    "a bin that is full too late": (
        "sfb", ["bin_size=30"], "max: 25 is below bin_size (30): no probability would rise"
    ),
    "gains that do not settle": ("afd", ["alpha=2"], "beta: 1.8 is not above alpha (2)"),
    "least above most": ("af_qcn", ["p_min=0.5"], "p_max: 0.1 is below p_min (0.5)"),
    "nobody to compare with": ("choke", ["candidates=0"], "candidates: 0 is out of range"),
    "packets where a count is due": ("fred", ["minq=2p"], 'minq: "2p" is not a whole number'),
    "packets where bytes are due": ("cobalt", ["mtu=2p"], 'mtu: "2p" counts packets; bytes are'),
    "no time between changes": ("blue", ["freeze=0s"], "freeze: 0s is out of range"),
}  # fmt: skip


@pytest.mark.parametrize("case", LAWS)
def test_bad_parameter_of_a_discipline_is_refused(case: str, small: Path, sojourn: Command) -> None:
    """Contradictory values, wrong units and misspellings are refused."""
    law, parameters, part = LAWS[case]
    settings = [f"--set=up.qdisc={law}", *(f"--set=up.qdisc.{one}" for one in parameters)]
    one_line(sojourn("run", small, *settings), f"{small}: links.up.qdisc.{part}")


# Whole command lines; S stands for the small scenario.
COMMANDS: dict[str, tuple[list[str], str]] = {
    "unknown command": (["rnu"], "Did you mean 'run'"),
    "no file": (["run"], "Missing argument"),
    "list a slip": (["list", "codle"], 'did you mean "codel"'),
    "list of an unknown kind": (["list", "discipline", "red"], 'did you mean "disciplines"'),
    "list of the wrong kind": (["list", "tcp", "codel"], 'unknown name "codel"'),
    "compare nothing": (["compare", "S"], "--qdisc"),
    "compare an empty name": (["compare", "S", "--qdisc", "red,,codel"], "is not a list of names"),
    "compare a slip": (["compare", "S", "--qdisc", "red,codle"], 'did you mean "codel"'),
    "compare one twice": (["compare", "S", "--qdisc", "fifo,droptail"], "is given twice"),
    "compare on no link": (["compare", "S", "--qdisc", "red", "--link", "upp"], "unknown link"),
    "compare no seeds": (["compare", "S", "--qdisc", "red", "--seeds", "0"], "--seeds: 0"),
    "compare too many": (["compare", "S", "--qdisc", "red", "--seeds", "99999999"], "--seeds"),
    "compare into nowhere": (["compare", "S", "--qdisc", "red", "--plot", "/no/x.png"], "/no/x"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_bad_command_is_refused(case: str, small: Path, sojourn: Command) -> None:
    """Each case is a whole command line."""
    arguments, part = COMMANDS[case]
    one_line(sojourn(*(str(small) if a == "S" else a for a in arguments)), part)


@pytest.mark.parametrize(
    ("text", "arguments", "part"),
    [
        (SMALL.replace("5mbit", "5mbps"), ["run", "bad.toml"], "bad.toml: links.up.rate: "),
        ("", ["run", "bad.toml"], "bad.toml: the file is empty"),
        (SMALL, ["run", "bad.toml", "--out", "/proc/x"], "/proc/x: "),
        (SMALL, ["compare", "bad.toml", "--qdisc", "codle"], "bad.toml: links.up.qdisc"),
        (SMALL, ["replay", "bad.toml", "--qdisc", "red", "--rate", "1mbit"], "--out"),
    ],
)
def test_process_ends_with_one_line(
    text: str, arguments: list[str], part: str, tmp_path: Path
) -> None:
    """A real process also prints one line and no traceback."""
    (tmp_path / "bad.toml").write_text(text)
    done = subprocess.run(
        [Path(sys.executable).with_name("sojourn"), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    one_line((done.returncode, done.stdout, done.stderr), part)


def test_output_is_checked_before_the_run(small: Path, sojourn: Command) -> None:
    """A missing directory must not cost the result of a long run."""
    long = small.with_name("long.toml")
    long.write_text(SMALL.replace('"3s"', '"9000000s"'))
    one_line(sojourn("run", long, "--plot", "/no/where/x.png"), "/no/where/x.png: ")
    one_line(sojourn("run", long, "--out", "/dev/null/x"), "/dev/null/x: ")
