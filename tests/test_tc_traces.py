"""Output of `set -x`, batch files in scripts, and output with a word tc in it."""

from typing import Any

import pytest

from sojourn import tc

PLAIN = """\
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 20mbit
tc qdisc add dev eth0 parent 1:10 handle 10: fq_codel limit 500
"""

TRACES = {
    "bash": [f"+ {line}" for line in PLAIN.splitlines()],
    "subshell": [f"++ {line}" for line in PLAIN.splitlines()],
    "quoted": [
        "+ DEV=eth0",
        "++ cat /etc/rate",
        "+ tc qdisc add dev 'eth0' root handle 1: htb default 10",
        "+ '[' 1 -eq 1 ']'",
        "+ sudo -n /sbin/tc class add dev eth0 parent 1: classid 1:10 htb rate $'20mbit'",
        '+ [[ -n "" ]]',
        "+ tc qdisc add dev eth0 parent 1:10 handle 10: fq_codel limit \"500\" '' 2>/dev/null",
    ],
    "place": [f"+ ./shape.sh:{n}: {line}" for n, line in enumerate(PLAIN.splitlines(), 3)],
    "function": [f"+(./shape.sh:7): main(): {line}" for line in PLAIN.splitlines()],
    "here": [
        "tc -force -batch - <<'EOF' || exit 1",
        *(line.removeprefix("tc ") for line in PLAIN.splitlines()),
        "EOF",
    ],
    "batch": [line.removeprefix("tc ") for line in PLAIN.splitlines()],
}
"""The commands of `PLAIN` as they are traced, or given to `tc -batch`."""


def _without_lost(links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in link.items() if key != "lost"} for link in links]


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_read_as_its_commands(name: str) -> None:
    """Nothing is lost."""
    links = tc.imported("\n".join(TRACES[name]))
    assert links == tc.imported(PLAIN)
    assert links[0]["rate"] == "20mbit"


def test_the_file_of_a_batch_is_named() -> None:
    """Its commands are not in the text."""
    links = tc.imported(f"{PLAIN}tc -batch /etc/more.tc\n")
    assert "tc -batch /etc/more.tc: import the commands of that file" in str(links[0]["lost"])
    assert _without_lost(links) == _without_lost(tc.imported(PLAIN))


def test_output_with_a_word_tc_is_read() -> None:
    """The qdiscs mqprio and taprio print the number of their traffic classes so."""
    for line in ("tc 2 map 0 1 0 0 queues:(0:0) (1:1)", "tc 2 map 0 1 queues 1@0 1@1"):
        links = tc.imported(
            f"qdisc mqprio 8001: dev eth0 root {line}\n"
            "qdisc fq_codel 0: dev eth0 parent 8001:1 limit 500p flows 1024 target 5ms\n"
            "qdisc fq_codel 0: dev eth0 parent 8001:2 limit 500p flows 1024 target 5ms\n"
        )
        assert [(link["dev"], link["qdisc"]["limit"]) for link in links] == [("eth0", "500p")]
