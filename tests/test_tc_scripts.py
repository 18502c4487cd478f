"""Scripts, JSON of tc and exports that lost words, or were not read as by Linux."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn import InputError, _sojourn, tc

SHAPED = """[
{"kind":"htb","handle":"1:","dev":"eth0","root":true,"refcnt":2,
 "options":{"r2q":10,"default":"0x20","direct_packets_stat":7,"direct_qlen":1000}},
{"kind":"pie","handle":"20:","dev":"eth0","parent":"1:20",
 "options":{"limit":900,"target":15000,"tupdate":15000,"alpha":2,"beta":20}}]"""

CLASSES = """[
{"class":"htb","handle":"1:1","root":true,"prio":0,"rate":1250000,"ceil":1250000},
{"class":"htb","handle":"1:20","parent":"1:1","leaf":"20:","prio":1,"rate":625000,"ceil":1250000}]
"""


def test_json_of_qdiscs_and_classes_may_follow_each_other() -> None:
    """As two arrays, or in one."""
    one = json.dumps(json.loads(SHAPED) + json.loads(CLASSES))
    for text in (SHAPED + CLASSES, one):
        (link,) = tc.imported(text)
        assert (link["rate"], link["qdisc"]["limit"], link["lost"]) == ("10mbit", "900p", [])
    with pytest.raises(InputError, match="htb: has no class; add tc class show"):
        tc.imported(SHAPED)


NETEM = {
    "limit": 1000,
    "delay": {"delay": 0.1, "jitter": 0.01, "correlation": 0.25},
    "loss-state": {"p13": 0.01, "p31": 0.9, "p32": 0, "p23": 1, "p14": 0},
    "duplicate": {"duplicate": 0.01, "correlation": 0},
    "reorder": {"reorder": 0.25, "correlation": 0.5},
    "corrupt": {"corrupt": 0.02, "correlation": 0},
    "rate": {"rate": 125000, "packetoverhead": 20, "cellsize": 100, "celloverhead": 5},
    "slot": {"min-delay": 0.001, "max-delay": 0.002, "packets": 3, "bytes": 2000},
    "ecn": True,
    "gap": 5,
}


def _netem(**options: object) -> dict[str, Any]:
    entry = {"kind": "netem", "handle": "1:", "dev": "a", "root": True, "options": options}
    link: dict[str, Any] = tc.imported(json.dumps([entry]))[0]
    return link


def test_members_of_netem_are_read_or_named() -> None:
    """A gap of 0 and flags that are off mean nothing."""
    link = _netem(**NETEM)
    assert link["lost"] == []
    assert link["jitter"]["size"] == "10ms"
    assert link["jitter"]["correlation"] == 0.25
    assert link["loss"] == {
        "p13": 0.01,
        "p31": 0.9,
        "p32": 0.0,
        "p23": 1.0,
        "p14": 0.0,
        "ecn": True,
    }
    assert (link["duplicate"]["probability"], link["corrupt"]["probability"]) == (0.01, 0.02)
    assert link["reorder"] == {"probability": 0.25, "correlation": 0.5, "gap": 5}
    assert link["slot"] == {"min": "1ms", "max": "2ms", "packets": 3, "bytes": "2kB"}
    assert (link["overhead"], link["in_flight_limit"]) == ("34 cells 100 5", "1000p")
    rate = {"rate": 125000, "packetoverhead": -14, "cellsize": 53, "celloverhead": -5}
    assert _netem(rate=rate)["overhead"] == "0 cells 53 -5"
    plain = {"limit": 1000, "delay": {"delay": 0.1, "jitter": 0.0}, "ecn": False, "gap": 0}
    assert _netem(**plain)["lost"] == []
    lost = ["netem novel 5: sojourn has no such word"]
    assert _netem(limit=9, novel=5)["lost"] == lost


def test_options_of_dualpi2_are_read() -> None:
    """Linux 6.17 prints them with dashes and units in the names."""
    options = {
        "limit": 10000, "memory-limit": 15140000, "target": 15000, "tupdate": 16000,
        "alpha": 0.16, "beta": 3.2, "step-thresh-us": 2000, "min-qlen-step": 1, "coupling": 3,
        "drop-overload": "overflow", "drop-early": "drop_dequeue", "c-protection": 20,
        "ecn-mask": "any_ect", "split-gso": None,
    }  # fmt: skip
    entry = {"kind": "dualpi2", "handle": "1:", "dev": "a", "root": True, "options": options}
    (link,) = tc.imported(json.dumps([entry]))
    keys = ("step_thresh", "coupling_factor", "drop_on_overload", "any_ect", "memlimit")
    assert [link["qdisc"][key] for key in keys] == ["2ms", 3, False, True, "15140kB"]
    assert link["lost"] == []


def test_output_of_hfsc_is_no_json_before_iproute2_6_10() -> None:
    """Its options lack quotes."""
    text = '[{"kind":"hfsc","handle":"1:","dev":"a","root":true,"options":{default 10 }}]'
    state = json.loads(_sojourn.tc_state(text))
    assert state["devices"][0]["qdiscs"][0]["words"]["default"] == "0x10"


def test_a_burst_is_one_of_the_link() -> None:
    """And comes back from its export."""
    (link,) = tc.imported("tc qdisc add dev a root tbf rate 10mbit burst 256mb latency 25ms")
    assert (link["rate"], link["burst"]) == ("10mbit", "268435456B")
    assert 'burst = "268435456B"' in tc.toml([link])
    lines = tc.export(sj.Link(rate="10mbit", burst="30kB", qdisc="codel"))
    assert " burst 30000b cburst 30000b" in lines
    (back,) = tc.imported(lines)
    assert (back["burst"], back["lost"]) == ("30kB", [])


def test_shares_of_a_rate_need_the_speed(sojourn: Command) -> None:
    """`--rate` is the speed of the device."""
    script = "tc qdisc add dev a root tbf rate 10% burst 9k limit 9k"
    code, _, error = sojourn("tc", "import", script)
    assert (code, "give it with --rate" in error) == (2, True)
    code, out, _ = sojourn("tc", "import", script, "--rate", "1gbit")
    assert (code, 'rate = "100mbit"' in out) == (0, True)


def test_strict_counts_what_is_lost(sojourn: Command) -> None:
    """The first word, and the number of others."""
    script = "tc qdisc add dev a root fq_codel memory_limit 4mb; tc -b a"
    code, _, error = sojourn("tc", "import", script, "--strict")
    assert (code, error.count("\n"), "(and 1 more)" in error) == (2, 1, True)


TWO = {
    "duration": "1s",
    "links": {"a": {"rate": "10mbit"}, "b": {"rate": "1mbit", "qdisc": "tc: cake nat"}},
    "flows": [{"name": "a", "path": ["a", "b"]}],
}


def test_two_links_do_not_share_a_device() -> None:
    """The second would replace the first."""
    with pytest.raises(InputError, match="--dev x0: is the device of two links, a and b"):
        tc.export(TWO, dev=["a=x0", "b=x0"])
    with pytest.raises(InputError, match="--dev eth1: is the device of two links"):
        tc.export(TWO, dev=["a=eth1"])
    assert tc.export(TWO, dev=["a=x0"]).count("# link ") == 2


def test_words_of_a_tc_line_are_named_in_its_export(sojourn: Command) -> None:
    """The discipline does not have them, so the exported line neither."""
    assert tc.export("tc: cake nat").startswith("# nat: hosts are given by name")
    assert "\n# nat: hosts" in tc.export(TWO)
    assert sojourn("tc", "export", "tc: cake nat", "--strict")[0] == 2
    assert sojourn("tc", "export", "tc: cake wash", "--strict")[0] == 0


def test_cake_with_a_bandwidth_needs_no_shaper() -> None:
    """Unless the line is slower than its bandwidth."""
    link = {"rate": "20mbit", "delay": "5ms", "qdisc": "tc: cake bandwidth 18mbit"}
    lines = tc.export(link).splitlines()
    assert lines[-1] == "tc qdisc replace dev eth0 parent 1:1 handle 2: cake bandwidth 18mbit"
    assert not any("htb" in line for line in lines)
    for other in ({**link, "rate": "10mbit"}, {**link, "qdisc": "tc: cake"}):
        assert any("htb" in line for line in tc.export(other).splitlines())


def test_the_output_of_set_x_is_a_script(tmp_path: Path, sojourn: Command) -> None:
    """Loops and variables are expanded in it; the script itself is refused with that hint."""
    script = tmp_path / "loop.sh"
    script.write_text("for i in 1 2; do tc qdisc add dev eth$i root pie limit $((i * 5)); done\n")
    code, _, error = sojourn("tc", "import", script)
    assert (code, "import the output of bash -x SCRIPT" in error) == (2, True)
    trace = tmp_path / "trace"
    trace.write_text(
        "+ for i in 1 2\n+ tc qdisc add dev eth1 root pie limit 5\n+ for i in 1 2\n"
        "+ tc qdisc add dev eth2 root pie limit 10\n"
    )
    code, out, _ = sojourn("tc", "import", trace)
    assert (code, out.count("[links.eth"), '"10p"' in out) == (0, 2, True)


SHAPER = """#!/bin/sh
DEV=${1:-ppp0}
UPLINK=220
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:1 htb rate ${UPLINK}kbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate $(( UPLINK / 2 ))kbit prio 1
tc class add dev $DEV parent 1:1 classid 1:20 htb rate $((9*$UPLINK/10))kbit prio 2
"""


def test_defaults_and_arithmetic_of_the_shell_are_computed() -> None:
    """As the script does it without arguments."""
    (link,) = tc.imported(SHAPER)
    assert link["dev"] == "ppp0"
    assert link["qdisc"]["rates"] == ["220kbit", "110kbit", "198kbit"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "DEV=wlan0\ntc qdisc add dev $DEV root pie\n\ntc qdisc del dev $DEV root\n",
            'line 4: no qdisc is left after "tc qdisc del dev wlan0 root": leave it out',
        ),
        (
            "tc qdisc add dev eth0 root handle 1: cbq avpkt 1000 bandwidth 10mbit\n"
            "tc class add dev eth0 parent 1: classid 1:1 cbq rate 700kbit\n",
            "line 2: cbq left Linux in 6.3; use htb",
        ),
        (
            "tc qdisc add dev eth0 root handle 1: dsmark indices 64\n"
            "tc qdisc add dev eth0 parent 1: handle 2: htb\n",
            "eth0.dsmark: left Linux in 6.3; set the DSCP of the flows",
        ),
    ],
)
def test_a_script_of_which_nothing_can_be_made_says_why(script: str, message: str) -> None:
    """The command and its line."""
    with pytest.raises(InputError) as caught:
        tc.imported(script)
    assert message in str(caught.value)
