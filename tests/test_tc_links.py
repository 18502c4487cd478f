"""Links as tc lines and back: units, rates, scenarios with several links, sqm, texts."""

import io
import json
import tomllib
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn import InputError, tc
from sojourn.formats import sqm

PIE = {"name": "pie"}


def link(**keys: object) -> dict[str, object]:
    """Return a link as `imported` returns it."""
    return {"dev": "eth0", "rate": None, "burst": None, "delay": None, "loss": None, "qdisc": None,
            "lost": [], **keys}  # fmt: skip


def test_a_burst_is_exported_in_bytes_of_tc() -> None:
    """3 kB are 3000 bytes; tc would read `3k` as 3072."""
    lines = tc.export(sj.Link(rate="10mbit", burst="3kB", qdisc="codel")).splitlines()
    assert "htb rate 10mbit burst 3000b" in lines[1]
    assert "burst" not in tc.export(sj.Link(rate="10mbit", qdisc="codel"))


def test_bursts_of_losses_are_exported_as_percentages() -> None:
    """The four numbers of Gilbert and Elliott in the order of netem."""
    loss = {"p": 0.01, "r": 0.25, "1-h": 0.5, "1-k": 0.0}
    lines = tc.export({"rate": "1mbit", "loss": loss, "qdisc": "pie"}).splitlines()
    assert lines[2].endswith("netem limit 10000 loss gemodel 1% 25% 50% 0%")
    assert lines[0].startswith("# loss: netem loses packets before the queue")
    back = tc.imported("\n".join(lines))[0]
    assert back["loss"] == loss
    both = tc.export({"rate": "1mbit", "delay": "5ms", "loss": loss, "qdisc": "pie"})
    assert "netem limit 10000 delay 5ms loss gemodel 1% 25% 50% 0%" in both


def test_a_delay_alone_says_nothing_of_losses() -> None:
    """Netem at the root, the shaper below it, the qdisc below that."""
    lines = tc.export({"rate": "1mbit", "delay": "5ms", "qdisc": "pie"}, dev="x0").splitlines()
    places = [line.split(" dev x0 ")[1] for line in lines if line.startswith("tc ")]
    assert not any(line.startswith("# loss") for line in lines)
    assert [place.split(" netem")[0].split(" htb")[0].split(" pie")[0] for place in places] == [
        "root handle 1:", "parent 1:1 handle 2:", "parent 2: classid 2:1", "parent 2:1 handle 10:"
    ]  # fmt: skip
    assert "# trace: Linux has no recorded rates or delays" in tc.export(
        {"rate": "1mbit", "trace": {"t_ns": [0], "rate_bps": [1_000_000]}, "qdisc": "pie"}
    )


TWO = {
    "duration": "1s",
    "links": {"a": {"rate": "10mbit"}, "b": {"rate": "1mbit"}, "c": {"rate": "2mbit"}},
    "flows": [{"name": "a", "path": ["a", "b", "c"]}],
}


def devices(text: str) -> list[str]:
    """Return the device of each link's shaper."""
    return [line.split()[4] for line in text.splitlines() if " htb default " in line]


def test_each_link_of_a_scenario_has_a_device() -> None:
    """By name, by order, then eth with the number of the link."""
    assert devices(tc.export(TWO)) == ["eth0", "eth1", "eth2"]
    assert devices(tc.export(TWO, dev=["a0", "b0"])) == ["a0", "b0", "eth2"]
    assert devices(tc.export(TWO, dev=["c=c0", "a0"])) == ["a0", "eth1", "c0"]
    text = tc.export(TWO)
    assert text.startswith("# link a\n")
    assert text.count("\n\n# link ") == 2
    assert devices(tc.export(sj.Link(rate="1mbit"), dev=["a0", "b0"])) == ["a0"]
    with pytest.raises(InputError, match="--dev wan: the scenario has no link of that name"):
        tc.export(TWO, dev=["wan=a0"])


def test_a_shaper_has_the_last_word_on_the_rate() -> None:
    """`--rate` is for devices that no qdisc limits."""
    assert 'rate = "20mbit"' in tc.toml([link(rate="20mbit", qdisc=PIE)], "1gbit")
    assert 'rate = "1gbit"' in tc.toml([link(qdisc=PIE)], "1gbit")
    shaped = "tc qdisc add dev eth0 root tbf rate 20mbit burst 32k latency 50ms"
    assert tc.links(shaped, rate="1gbit")["eth0"].rate == "20mbit"


def test_toml_of_a_link_has_what_is_known() -> None:
    """An unknown rate is a comment with its reason; lost words are comments."""
    whole = link(rate="1mbit", delay="5ms", loss=0.01, qdisc=PIE, lost=["x: why", "y"])
    assert tc.toml([whole, link(dev="eth1")]) == (
        '[links.eth0]\nrate = "1mbit"\ndelay = "5ms"\nloss = 0.01\nqdisc = { name = "pie" }\n'
        "# lost: x: why\n# lost: y\n\n"
        '[links.eth1]\n# rate = "..."  # required: no qdisc limits its rate, so add --rate'
    )
    cake = link(qdisc={"name": "cake", "bandwidth": "9mbit"})
    assert "the line behind cake's shaper (bandwidth 9mbit)" in tc.toml([cake])
    assert "no qdisc limits its rate" in tc.toml([link(qdisc={"name": "cake"})])
    other = link(qdisc={"name": "red", "bandwidth": "9mbit"})
    assert "no qdisc limits its rate" in tc.toml([other])


@pytest.mark.parametrize(
    ("dev", "name"),
    [("eth0.5", "eth0_5"), ("$DEV", "DEV"), ("wlan-0_x", "wlan-0_x"), ("é", "link"),
     ("a" * 70, "a" * 64)],
)  # fmt: skip
def test_the_name_of_a_device_is_one_of_a_link(dev: str, name: str) -> None:
    """Letters, digits, dashes and underscores of ASCII; at most 64."""
    assert tc.toml([link(dev=dev, rate="1mbit")]).startswith(f"[links.{name}]\n")


def test_devices_with_equal_names_of_links_are_told_apart() -> None:
    """Otherwise the TOML had a table twice, which no reader accepts."""
    devs = ("eth0.5", "eth0_5", "eth0@5", "eth0_5_2", "x" * 99, "x" * 98)
    script = "\n".join(
        f"tc qdisc add dev {dev} root tbf rate 1mbit burst 9k lat 9ms" for dev in devs
    )
    links = tomllib.loads(tc.toml(tc.imported(script)))["links"]
    names = ["eth0_5", "eth0_5_2", "eth0_5_3", "eth0_5_2_2", "x" * 64, "x" * 56 + "_2"]
    assert list(links) == names


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("codel", "codel"),
        ("codel(target=5ms, limit=10p)", "codel(target=5ms, limit=10p)"),
        ("TC: codel", "TC: codel"),
        ("codel limit 5", "tc: codel limit 5"),
    ],
)
def test_several_words_are_those_of_tc(text: str, line: str) -> None:
    """A name, or one with parentheses, is ours."""
    assert tc.described(text) == line


@pytest.mark.parametrize("start", ["tc qdisc", "sudo tc qdisc", "qdisc", "/sbin/tc qdisc"])
def test_a_whole_command_is_its_qdisc(start: str) -> None:
    """The place of the qdisc does not matter; one without a queue is refused."""
    qdisc = tc.described(f"{start} add dev eth0 root codel limit 7")
    assert isinstance(qdisc, dict)
    assert (qdisc["name"], qdisc["limit"]) == ("codel", "7p")


def test_differences_are_parameters_of_either() -> None:
    """A dash where one has no such parameter; equal ones are left out."""
    rows = tc.diff("codel(ecn=true, target=7ms)", "codel(target=5ms)")
    assert sorted(rows) == [("ecn", "true", "false"), ("target", "7ms", "5ms")]
    assert ("name", "codel", "pie") in tc.diff("codel", "pie")
    assert ("interval", "100ms", "-") in tc.diff("codel", "pie")
    assert tc.diff("fq_codel(quantum=300B)", "fq_codel") == [("quantum", "300B", "1514B")]
    assert ("t_update", "-", "15ms") in tc.diff("codel", "pie(t_update=15ms)")
    with pytest.raises(InputError, match=r"^target: "):
        tc.diff("codel(target=x)", "pie")


def test_an_exported_discipline_has_the_given_device_and_rate() -> None:
    """Red computes its idle time from the rate."""
    line = tc.export("red(limit=400kB, min_th=30kB, max_th=90kB)", dev=["w0", "x"], rate="20mbit")
    assert "tc qdisc replace dev w0 root handle 1: red " in line
    assert "bandwidth 20mbit" in line
    assert json.dumps(tc.translate("codel", "20mbit")["line"]) == '"codel"'


CONFIG = "config queue\n option interface 'e'\n option upload '{up}'\n option download '{down}'\n"


def commands(*options: str, up: int = 1000, down: int = 0) -> list[str]:
    """Return the commands of a queue with some options, `simplest.qos` by default."""
    options_of_script = ["script simplest.qos", *options]
    lines = [
        f" option {one.split(' ', 1)[0]} '{one.split(' ', 1)[1]}'\n" for one in options_of_script
    ]
    return sqm.to_commands(CONFIG.format(up=up, down=down) + "".join(lines)).splitlines()


@pytest.mark.parametrize(
    ("kind", "word"),
    [("fq_codel", " ecn"), ("codel", " ecn"), ("pie", " ecn"), ("sfq", ""), ("pfifo", "")],
)
def test_sqm_gives_ecn_to_the_kinds_that_have_it(kind: str, word: str) -> None:
    """sqm-scripts, get_ecn: tc refuses the word for others."""
    lines = commands(f"qdisc {kind}", "egress_ecn ECN", "etarget default")
    assert lines[-1] == f"tc qdisc add dev e parent 1:10 handle 110: {kind} limit 1001{word}"
    assert len(tc.imported("\n".join(lines))) == 1


def test_the_directions_of_sqm_have_their_own_words() -> None:
    """`e` is egress and upload, `i` ingress and download; a rate of 0 is no shaper."""
    options = ("egress_ecn NOECN", "ingress_ecn ECN", "elimit 1001", "ilimit 900", "etarget 9ms")
    lines = commands(*options, down=5000)
    assert "htb quantum 1749 rate 1000kbit ceil 1000kbit burst 1749 cburst 1749" in lines[1]
    assert lines[3].endswith("fq_codel limit 1001 target 9ms noecn")
    assert " rate 5000kbit ceil 5000kbit " in lines[5]
    assert lines[7].endswith("fq_codel limit 900 target 5000us interval 100000us ecn")
    assert len(commands(up=0, down=5)) == 4
    cake = commands("script piece_of_cake.qos", "qdisc fq_codel", "eqdisc_opts nat")
    words = "diffserv3 nat besteffort nat"
    assert cake == [f"tc qdisc add dev e root cake bandwidth 1000kbit {words}"]


PYTHON = {
    "duration": "1s",
    "links": {"a": {"rate": "1mbit", "qdisc": "pie"}, "b": {"rate": "1mbit"}},
    "flows": [
        {"name": "x", "path": ["a", "b"], "tcp": "cc.py:Mine", "source": {"name": "src.py:Mine"}},
        {"name": "y", "path": ["a"], "tcp": {"name": "reno"}, "source": "cbr"},
    ],
}


def test_classes_in_python_are_left_out_of_an_export() -> None:
    """Senders have no qdisc, so the files named here need not exist; a discipline is refused."""
    assert tc.export(PYTHON).count("\n# link ") == 1
    kept = tc._without_code(PYTHON)["flows"]
    assert [sorted(flow) for flow in kept] == [
        ["name", "path"], ["name", "path", "source", "tcp"]
    ]  # fmt: skip
    links = {**PYTHON["links"], "b": {"rate": "1mbit", "qdisc": "q.py:Mine"}}  # type: ignore[dict-item]
    with pytest.raises(InputError, match=r'^links\.b\.qdisc: "q\.py:Mine" is written in Python'):
        tc.export({**PYTHON, "links": links})
    assert not tc._is_code("codel")
    assert not tc._is_code({"limit": "10p"})
    for odd in ({"links": 5}, {"links": {"a": 5}, "flows": ["x"]}, {"links": {}, "flows": 5}):
        with pytest.raises(InputError):
            tc.export(odd)


def text(script: str) -> io.TextIOWrapper:
    """Return a standard input with a script."""
    return io.TextIOWrapper(io.BytesIO(script.encode()))


def test_a_script_can_come_from_the_standard_input(
    monkeypatch: pytest.MonkeyPatch, sojourn: Command
) -> None:
    """Without a file, or with a dash; messages then name no file."""
    for arguments in ((), ("-",)):
        monkeypatch.setattr("sys.stdin", text("tc qdisc add dev e root pie limit 7"))
        code, out, _ = sojourn("tc", "import", *arguments, "--rate", "1mbit")
        assert (code, out.count('"7p"')) == (0, 1)
    monkeypatch.setattr("sys.stdin", text("tc qdisc add dev e root codle"))
    assert sojourn("tc", "import")[2].startswith("sojourn: line 1: unknown qdisc")


LOST = "tc qdisc add dev e root fq_codel memory_limit 4mb"


def test_strict_names_the_device_and_the_word(sojourn: Command) -> None:
    """Without it, the word is a comment."""
    code, _, error = sojourn("tc", "import", LOST, "--strict")
    assert code == 2
    assert "e: memory_limit 4194304" in error
    code, out, _ = sojourn("tc", "import", LOST)
    assert (code, "# lost: memory_limit" in out) == (0, True)
    code, out, _ = sojourn("tc", "import", LOST, "--json")
    assert out.startswith('[\n  {\n    "burst"')


def test_strict_accepts_comments_that_name_no_loss(tmp_path: Path, sojourn: Command) -> None:
    """Only "NAME: reason" is a loss: not the name of a link, nor the note on netem."""
    file = tmp_path / "x.json"
    links = {"a": {"rate": "1mbit", "delay": "5ms", "qdisc": "tc: pie"}}
    file.write_text(json.dumps({**TWO, "links": links, "flows": [{"name": "f", "path": ["a"]}]}))
    code, out, _ = sojourn("tc", "export", file, "--strict")
    assert (code, out.count("# ")) == (0, 2)
    code, _, error = sojourn("tc", "export", "codel(variant=ns2_v1)", "--strict")
    assert code == 2
    assert error.startswith("sojourn: variant = ns2_v1: ")


@pytest.mark.parametrize(
    ("dev", "code"), [("a" * 15, 0), ("a" * 16, 2), ("", 2), ("up=", 2), ("a b", 2), ("a/b", 2)]
)
def test_a_device_has_a_name_of_linux(dev: str, code: int, sojourn: Command) -> None:
    """1 to 15 characters (IFNAMSIZ is 16, with the end)."""
    assert sojourn("tc", "export", "codel", "--dev", dev)[0] == code


def test_a_device_may_have_an_equals_sign() -> None:
    """The name of a link has none, so the first one divides."""
    assert devices(tc.export(TWO, dev=["c=x=y"])) == ["eth0", "eth1", "x=y"]


def test_differences_as_json_and_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, sojourn: Command
) -> None:
    """By the name of the parameter; no word of a table is broken. Exit code of diff."""
    code, out, _ = sojourn("tc", "diff", "codel", "codel(target=9ms)", "--json")
    assert (code, out) == (1, '{\n  "target": [\n    "5ms",\n    "9ms"\n  ]\n}\n')
    monkeypatch.setenv("COLUMNS", "20")
    out = sojourn("tc", "diff", "codel", "codel(target=987654321ns, ecn=true)")[1]
    assert "    codel(target=987654321ns,\n" in out


def test_a_command_without_a_queue_is_no_discipline() -> None:
    """Netem with a limit is one, an ingress qdisc is not."""
    with pytest.raises(InputError):
        tc.described("tc qdisc add dev eth0 ingress")
    assert tc.described("  tc: codel limit 5") == "  tc: codel limit 5"
    assert tc.described("pie ecn") == "tc: pie ecn"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cake bandwidth 8bit", "e0: qdisc.bandwidth: 8bit is out of range, allowed: "),
        ("cake bandwidth 1", "e0: qdisc.bandwidth: 0bit is out of range, allowed: "),
        ("codel interval 0", "e0: qdisc.interval: 0s is out of range, allowed: "),
    ],
)
def test_a_link_that_no_scenario_accepts_is_refused(
    words: str, message: str, sojourn: Command
) -> None:
    """Values that tc accepts: the printed link could not be run."""
    code, out, error = sojourn("tc", "import", f"tc qdisc add dev e0 root {words}")
    assert (code, out) == (2, "")
    assert error.startswith(f"sojourn: {message}")
