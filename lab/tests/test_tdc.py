"""Tests in the form of Linux's tc-testing: cases of our own, and the page about Linux's."""

import json
import re
from pathlib import Path

import pytest

from sojourn_lab.validation.tdc import __main__ as program
from sojourn_lab.validation.tdc import compare
from sojourn_lab.validation.tdc.reasons import REASONS

ADD = "$TC qdisc add dev $DUMMY root handle 1:"
ETS = f"{ADD} ets quanta 3000 2000"

ACCEPTED = {
    # What a change keeps.
    (f"{ADD.replace('add', 'replace')} fq_codel limit 500", f"{ADD} fq_codel quantum 900"):
        ("qdisc fq_codel 1: root refcnt [0-9]+ limit 500p flows 1024 quantum 900", "limit 500"),
    ("$TC qdisc change dev $DUMMY root handle 1: cake mpu 84", f"{ADD} cake overhead 30 mpu 64"):
        ("qdisc cake 1: root .*bandwidth unlimited .*noatm overhead 30 mpu 84", "mpu 84"),
    # What tc computes.
    (f"{ADD} choke limit 600 bandwidth 9mbit min 40", ""):
        ("qdisc choke 1: root refcnt [0-9]+ limit 600p min 40p max 150p", "max 150"),
    (f"{ADD} choke limit 600 bandwidth 9mbit", ""):
        ("qdisc choke 1: root refcnt [0-9]+ limit 600p min 50p max 150p", "max 150"),
    (f"{ADD} cake fwmark 12", ""): ("qdisc cake 1: root .*fwmark 0xc ", "fwmark 0xc"),
    (f"{ADD} ets strict 1 quanta 1000 700", ""):
        ("qdisc ets 1: root .*bands 3 strict 1 quanta 1000 700 priomap", "1000 700"),
    (f"{ADD} ets bands 3 quanta 1000", ""):
        ("qdisc ets 1: root .*bands 3 quanta 1000 [1-9][0-9]* [1-9][0-9]* priomap", "quanta 1000"),
    # Classes.
    ("$TC class change dev $DUMMY classid 1:2 ets quantum 999", ETS):
        ("qdisc ets 1: root .*quanta 3000 999 priomap", "3000 999"),
    ("$TC class change dev $DUMMY classid 1:1 ets", ETS):
        ("qdisc ets 1: root .*quanta 3000 2000 priomap", "quanta 3000"),
    ("$TC class change dev $DUMMY classid 1:1 ets", f"{ADD} ets strict 2"):
        ("qdisc ets 1: root .*bands 2 strict 2 priomap", "bands 2"),
    ("$TC class add dev $DUMMY parent 1: classid 1:7 htb rate 3mbit", f"{ADD} htb default 7"):
        ("class htb 1:7 root prio 0 rate 3Mbit ceil 3Mbit burst 1600b cburst 1600b", "ceil 3"),
    ("$TC class add dev $DUMMY parent 1: classid 1:7 hfsc ls m2 3mbit ul m2 5mbit", f"{ADD} hfsc"):
        ("class hfsc 1:7 parent 1: ls m1 0bit d 0us m2 3Mbit ul m1 0bit d 0us m2 5Mbit", "m2 3"),
    ("$TC class add dev $DUMMY parent 1: classid 1:3 drr quantum 999", f"{ADD} drr"):
        ("class drr 1:3 root quantum 999b", "quantum 999"),
    # Qdiscs without classes, handles, and netem.
    (f"{ADD} htb", ""): ("qdisc htb 1: root refcnt [0-9]+ r2q 10 default 0", "default 0"),
    ("$TC qdisc add dev $DUMMY parent root handle 0x1: prio bands 4", ""):
        ("qdisc prio 1: root .*bands 4 ", "bands 4"),
    (f"{ADD} netem slot distribution custom 2ms 1ms packets 9", ""):
        ("qdisc netem 1: root .*slot distribution 2ms 1ms packets 9", "packets 9"),
    (f"{ADD} netem loss gemodel 1% 20%", ""):
        (r"qdisc netem 1: root .*loss gemodel p 1% r 20% 1-h 100% 1-k 0%", "p 1"),
}  # fmt: skip
"""Command under test and the one before it; a pattern of our own, and a part of it to falsify."""

MAP = "0 1 " * 9

REFUSED = [
    "ets bands 2 strict 2 quanta 900", "ets quanta 0", "ets bands 17", "ets strict 17",
    "ets quanta 100 200 0", "ets bands 3 priomap 3", f"ets bands 3 priomap {MAP}", "ets",
    "prio bands 2 priomap 2", f"prio priomap {MAP}", "prio bands 1", "prio bands 17",
    "red limit 900k avpkt 900 nodrop", "choke limit 600 bandwidth 9mbit min 200 max 100",
    "fq_codel flows 0", "fq_codel flows 65537", "tbf rate 2mbit burst 5k limit 9k latency 1ms",
    "netem delay 3ms distribution normal", "netem gap 3", "netem loss 130%", "cake fwmark x",
    "hfsc m1 5mbit", "codel limit 1k", "pfifo limit 1 2",
]  # fmt: skip
"""Words that tc or the kernel refuses."""


def case(
    command: str, setup: str = "", code: str = "0", pattern: str = "qdisc x 1:"
) -> compare.Test:
    """Return a test as Linux's files have it."""
    entry = {
        "id": "ffff", "setup": [setup] if setup else [["$TC qdisc del dev $DUMMY root", 0, 2]],
        "cmdUnderTest": command, "expExitCode": code, "matchPattern": pattern,
        "verifyCmd": f"$TC {pattern.split()[0]} show dev $DUMMY",
        "matchCount": "0" if code != "0" else "1",
    }  # fmt: skip
    return compare.parsed("x", entry)


@pytest.mark.parametrize("commands", ACCEPTED)
def test_what_linux_accepts_has_its_parameters(commands: tuple[str, str]) -> None:
    """Each with some words of the pattern; another value in the pattern is noticed."""
    command, setup = commands
    pattern, part = ACCEPTED[commands]
    outcome = compare.compare(case(command, setup, pattern=pattern))
    assert (outcome.differences, outcome.words > 0) == ((), True)
    wrong = pattern.replace(part, f"{part[:-1]}1{part[-1]}")
    assert wrong != pattern
    assert compare.compare(case(command, setup, pattern=wrong)).differences
    assert "refused in Linux" in compare.compare(case(command, setup, code="2")).differences[0]


@pytest.mark.parametrize("words", REFUSED)
def test_what_linux_refuses_is_refused(words: str) -> None:
    """By tc with 1, or by the kernel with 2."""
    assert compare.compare(case(f"{ADD} {words}", code="2")).differences == ()
    outcome = compare.compare(case(f"{ADD} {words}", pattern="qdisc pfifo 1: root"))
    assert "accepted in Linux" in outcome.differences[0]


def test_a_second_root_is_refused() -> None:
    """With the same handle, and without the first qdisc in the state of the test."""
    outcome = compare.compare(case(f"{ADD} pie", f"{ADD} pie", code="2", pattern="qdisc codel 1:"))
    assert outcome.differences == ()
    outcome = compare.compare(case(f"{ADD} pie", f"{ADD} pie", code="2", pattern="qdisc pie 1:"))
    assert outcome.differences == ("pie 1: does not exist in Linux",)


def test_the_page_lists_the_reasons() -> None:
    """Each test that is not equal has one; the numbers of the page add up."""
    text = program.PAGE.read_text()
    numbers = re.search(r"^(\d+) of (\d+) tests of Linux .*?other (\d+) is", text, re.M | re.S)
    assert numbers
    equal, all_, other = map(int, numbers.groups())
    listed = re.findall(r"^\| \w+ \| ([0-9a-f]{4}) \| (.+) \|$", text, re.M)
    assert dict(listed) == REASONS
    assert equal + other == all_ == 339
    assert other == len(listed)
    rows = re.findall(r"^\| (\w+) \|" + r" (\d+) \|" * 5 + "$", text, re.M)
    sums = [sum(int(row[column]) for row in rows[:-1]) for column in range(1, 6)]
    assert [int(one) for one in rows[-1][1:]] == sums


def test_the_program_reads_a_source_of_linux(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its version; a test that differs without a reason is printed, with exit code 1."""
    out = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["tdc", str(tmp_path), "--out", str(out)])
    assert program.main() == 2
    assert "has no tools/testing" in capsys.readouterr().err
    folder = tmp_path / compare.FOLDER
    folder.mkdir(parents=True)
    (tmp_path / "Makefile").write_text("VERSION = 9\nPATCHLEVEL = 8\nSUBLEVEL = 7\n")
    entry = {
        "id": "abcd", "setup": ["$IP link add dev $DUMMY type dummy"], "expExitCode": "0",
        "cmdUnderTest": f"{ADD} pie limit 40", "verifyCmd": "$TC qdisc show dev $DUMMY",
        "matchPattern": "qdisc pie 1: root refcnt 2 limit 41p", "matchCount": "1",
    }  # fmt: skip
    (folder / "pie.json").write_text(json.dumps([entry]))
    assert program.main() == 1
    assert "pie abcd: limit: 40, in Linux 41\n" in capsys.readouterr().out
    assert "0 of 1 tests of Linux 9.8.7" in out.read_text()
