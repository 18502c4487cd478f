"""Kinds of scripts, outputs and files that people have: each is read, or refused with the word."""

from typing import Any

import pytest

from sojourn import InputError, tc

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a deletion of the ingress leaves the root": (
        "tc qdisc replace dev wan root cake bandwidth 31mbit\ntc qdisc del dev wan ingress",
        {"qdisc.name": "cake", "qdisc.bandwidth": "31mbit", "lost": []},
    ),
    "a size table before a bucket": (
        "tc qdisc add dev dsl0 root handle 5: stab linklayer atm overhead -10 tbf rate 900kbit "
        "burst 2000 latency 250ms\ntc qdisc add dev dsl0 parent 5:1 fq limit 700",
        {"rate": "900kbit", "burst": "2kB", "overhead": "4 atm", "qdisc.limit": "700p", "lost": []},
    ),
    "a size table in an output": (
        "qdisc htb 1: dev dsl0 root refcnt 2 r2q 10 default 0x12 direct_packets_stat 0\n"
        " linklayer atm overhead -10 mtu 2047 tsize 512\n"
        "qdisc pie 12: dev dsl0 parent 1:12 limit 500p target 15ms tupdate 16ms alpha 2 beta 20\n"
        "class htb 1:12 dev dsl0 root leaf 12: prio 0 rate 640Kbit ceil 640Kbit "
        "burst 1600b cburst 1600b",
        {"rate": "640kbit", "overhead": "4 atm", "qdisc.limit": "500p", "lost": []},
    ),
    "a bucket that is larger than the memory of a router": (
        "qdisc tbf 3: dev veth7 root refcnt 2 rate 12Mbit burst 128Mb lat 20ms",
        {"rate": "12mbit", "burst": "134217728B", "lost": []},
    ),
    "a long delay with the usual limit": (
        "tc qdisc add dev sat0 root netem delay 700ms",
        {"delay": "700ms", "in_flight_limit": "1000p", "lost": []},
    ),
    "a shaper with a delay below it": (
        "tc qdisc add dev t1 root handle 1aff: htb default 1\n"
        "tc class add dev t1 parent 1aff: classid 1aff:1 htb rate 60.0Mbit burst 75.0KB\n"
        "tc qdisc add dev t1 parent 1aff:1 handle 2aff: netem delay 80.0ms loss 0.5%",
        {"rate": "60mbit", "delay": "80ms", "loss": 0.005},
    ),
    "queues of the hardware with hexadecimal handles": (
        "tc qdisc replace dev x1 root handle 7FFE: mq\n"
        "tc qdisc add dev x1 parent 7FFE:0x1 handle 0x1: htb default 3\n"
        "tc class add dev x1 parent 0x1: classid 0x1:3 htb rate 400mbit\n"
        "tc qdisc add dev x1 parent 0x1:3 cake besteffort",
        {"rate": "400mbit", "qdisc.name": "cake"},
    ),
    "curves of which the upper limit limits": (
        "tc qdisc add dev h1 root handle 1: hfsc default 20\n"
        "tc class add dev h1 parent 1: classid 1:1 hfsc ls m1 0bit m2 9mbit ul rate 12mbit\n"
        "tc class add dev h1 parent 1:1 classid 1:20 hfsc ls rate 4mbit",
        {"rate": "12mbit", "lost": []},
    ),
    "an emulator below red": (
        "tc qdisc add dev m1 root handle 5:0 htb default 1\n"
        "tc class add dev m1 parent 5:0 classid 5:1 htb rate 30mbit burst 15k\n"
        "tc qdisc add dev m1 parent 5:1 handle 6: red limit 900000 avpkt 1500\n"
        "tc qdisc add dev m1 parent 6: handle 10: netem delay 7ms loss 4%",
        {"rate": "30mbit", "delay": "7ms", "loss": 0.04, "qdisc.name": "red"},
    ),
    "a namespace": (
        "sudo tc -n lab qdisc add dev v3 root handle 1: netem delay 60ms rate 8mbit",
        {"dev": "lab/v3", "rate": "8mbit", "delay": "60ms"},
    ),
    "all words of netem in an output": (
        "qdisc netem 8003: dev a1 root refcnt 2 limit 900 delay 30ms  4ms 25% duplicate 2% "
        "reorder 20% 40% corrupt 1% gap 4",
        {
            "jitter.size": "4ms", "duplicate.probability": 0.02, "reorder.gap": 4,
            "corrupt.probability": 0.01, "in_flight_limit": "900p", "lost": [],
        },
    ),
    "bursts of losses as they are printed": (
        "qdisc netem 8002: dev a1 root limit 1000 loss gemodel p 2% r 20% 1-h 90% 1-k 0.2%",
        {"loss": {"p": 0.02, "r": 0.2, "1-h": 0.9, "1-k": 0.002}, "lost": []},
    ),
    "a rate with cells in an output": (
        "qdisc netem 2: dev a1 root limit 50 rate 3Mbit packetoverhead 8 cellsize 48 "
        "celloverhead 5",
        {"rate": "3mbit", "overhead": "22 atm", "lost": []},
    ),
    "an emulator as JSON": (
        '[{"kind":"netem","handle":"1:","dev":"a1","root":true,"options":{"limit":1000,'
        '"delay":{"delay":0.2,"jitter":0.0,"correlation":0},"ecn":false,"gap":0}}]',
        {"delay": "200ms", "lost": []},
    ),
    "a root as a parent": (
        "tc qdisc add dev e1 parent root handle 4: est 1sec 4sec fq_codel limit 555",
        {"qdisc.limit": "555p", "lost": []},
    ),
    "a policer at the ingress": (
        "tc qdisc add dev p1 handle ffff: ingress\n"
        "tc filter add dev p1 parent ffff: protocol ip prio 1 u32 match ip src 0.0.0.0/0 "
        "police rate 7mbit burst 40k drop flowid :1",
        {"dev": "p1 ingress", "qdisc.name": "police", "qdisc.burst": "40960B", "lost": []},
    ),
    "bands with qdiscs": (
        "tc qdisc add dev p2 root handle 1: prio\n"
        "tc qdisc add dev p2 parent 1:1 handle 10: sfq perturb 15\n"
        "tc qdisc add dev p2 parent 1:2 handle 20: tbf rate 20kbit buffer 1600 limit 3000\n"
        "tc qdisc add dev p2 parent 1:3 handle 30: sfq perturb 15",
        {"qdisc.name": "prio", "qdisc.children.0.name": "sfq", "qdisc.children.1.rate": "20kbit",
         "lost": []},
    ),
    "quanta of classes": (
        "tc qdisc add dev p3 root handle 1: drr\n"
        "tc class add dev p3 parent 1: classid 1:1 drr quantum 4000\n"
        "tc class add dev p3 parent 1: classid 1:2 drr quantum 1000",
        {"qdisc.quantum": "4kB", "qdisc.weights": "1 0.25", "lost": []},
    ),
    "classes as JSON": (
        '[{"kind":"htb","handle":"1:","dev":"j1","root":true,"options":{"r2q":10,"default":"0x5"}}]'
        '[{"class":"htb","handle":"1:5","root":true,"prio":0,"rate":500000,"ceil":750000}]',
        {"rate": "6mbit", "lost": []},
    ),
}  # fmt: skip


def _value(link: Any, path: str) -> Any:
    """Return the value at a path like `qdisc.limit`."""
    for part in path.split("."):
        link = link[int(part)] if part.isdigit() else link[part]
    return link


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_read(name: str) -> None:
    """With all that it says."""
    text, expected = CASES[name]
    (link,) = tc.imported(text)
    assert {path: _value(link, path) for path in expected} == expected


LOST = {
    "a delay in one band": (
        "tc qdisc add dev b1 root handle 1: prio\n"
        "tc qdisc add dev b1 parent 1:3 handle 30: netem delay 300ms\n"
        "tc filter add dev b1 parent 1: protocol ip prio 1 u32 match ip dst 198.51.100.7 "
        "flowid 1:3",
        "netem delay 300ms at 1:3",
    ),
    "a network in a filter": (
        "tc qdisc add dev b1 root handle 1: prio\n"
        "tc filter add dev b1 parent 1: protocol ip u32 match ip dst 198.51.100.0/24 flowid 1:3",
        "destination 198.51.100.0/24: a filter names one host, not a network",
    ),
    "a policer before a queue": (
        "tc qdisc add dev b1 clsact\ntc qdisc add dev b1 root fq\n"
        "tc filter add dev b1 egress matchall police rate 1mbit burst 9k drop",
        "a link has one queue, and no policer in front of it",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_a_case_names_what_is_lost(name: str) -> None:
    """With its words."""
    text, lost = LOST[name]
    links = tc.imported(text)
    assert [one for link in links for one in link["lost"] if lost in one]


REFUSED = {
    "variables of the shell": (
        "tc qdisc add dev eth0 root tbf rate ${UP}kbit burst 9k lat 9ms", r"bash -x SCRIPT",
    ),
    "outputs of two devices without names": (
        "qdisc fq_codel 0: root refcnt 2 limit 900p\n"
        "qdisc cake 8002: root refcnt 2 bandwidth 9Mbit",
        r"these are two devices; write dev NAME",
    ),
    "a qdisc twice at the root": (
        "tc qdisc add dev q1 root handle 1: pie\ntc qdisc add dev q1 root handle 2: codel",
        r"line 2: there is a qdisc at the root, pie 1:",
    ),
    "a qdisc below itself": (
        "qdisc tbf 1: root rate 2Mbit burst 9Kb lat 40ms\nqdisc netem 1: parent 1:1 limit 9",
        r"netem 1:: has the handle or the place of another qdisc",
    ),
    "a class that does not exist": (
        "tc qdisc add dev q1 root handle 1: htb\ntc qdisc add dev q1 parent 1:8 pie",
        r"there is no class 1:8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_case_is_refused(name: str) -> None:
    """With the word, and what to write."""
    text, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        tc.imported(text)
