"""Configurations of VyOS, dummynet and RouterOS: read where their meaning is unambiguous."""

from typing import Any

import pytest

from sojourn import InputError, formats, tc

VYOS = """\
set qos interface eth0 egress WAN
set qos policy shaper WAN bandwidth '20mbit'
set qos policy shaper WAN description 'up link'
set qos policy shaper WAN default bandwidth '100%'
set qos policy shaper WAN default codel-quantum '300'
set qos policy shaper WAN default target '8'
"""


def test_a_shaper_of_vyos() -> None:
    """Without classes: a rate, and fq_codel without ECN; times are in milliseconds."""
    (link,) = tc.imported(VYOS)
    assert (link["dev"], link["rate"]) == ("eth0", "20mbit")
    assert link["qdisc"]["name"] == "fq_codel"
    assert link["qdisc"]["quantum"] == "300B"
    assert link["qdisc"]["target"] == "8ms"
    assert link["qdisc"]["ecn"] is False


CLASSES = """\
interfaces {
    ethernet eth1 {
        traffic-policy {
            out VOIP
        }
    }
}
traffic-policy { /* old name */
    shaper VOIP {
        bandwidth 50000
        class 10 {
            bandwidth 20%
            ceiling 100%
            match voice {
                ip {
                    dscp EF
                    source {
                        address 192.0.2.0/24
                    }
                }
            }
            match marked {
                mark 7
            }
            match odd {
                ether {
                    type 2048
                }
            }
            priority 1
            queue-type drop-tail
            set-dscp CS1
        }
        default {
            bandwidth 80%
        }
    }
}
"""


def test_classes_of_vyos() -> None:
    """As VyOS runs them: htb, filters by header and mark, and a class for the rest."""
    read = formats.read(CLASSES)
    assert read.text.splitlines() == [
        "tc qdisc add dev eth1 root handle 1: htb default b",
        "tc class add dev eth1 parent 1: classid 1:1 htb rate 50000000bit",
        "tc class add dev eth1 parent 1:1 classid 1:a htb rate 10000000bit burst 15k quantum 1514"
        " prio 1 ceil 50000000bit",
        "tc qdisc add dev eth1 parent 1:a pfifo",
        "tc filter add dev eth1 parent 1: protocol all prio 1 u32 match ip dsfield 184 0xff"
        " match ip src 192.0.2.0/24 flowid 1:a",
        "tc filter add dev eth1 parent 1: protocol all prio 1 handle 7 fw flowid 1:a",
        "tc class add dev eth1 parent 1:1 classid 1:b htb rate 40000000bit burst 15k quantum 1514",
        "tc qdisc add dev eth1 parent 1:b fq_codel noecn",
    ]
    lost = [text for _, text in read.lost]
    assert lost == ["shaper VOIP class 10 match odd", "shaper VOIP class 10 set-dscp CS1"]


POLICIES = {
    "cake X bandwidth 30mbit\nset qos policy cake X rtt 50\n"
    "set qos policy cake X flow-isolation dual-src-host":
        "cake bandwidth 30mbit rtt 50ms dual-srchost",
    "cake X flow-isolation nat": "cake nat",
    "fq-codel X queue-limit 700": "fq_codel limit 700 noecn",
    "fair-queue X queue-limit 90": "sfq limit 90",
    "drop-tail X queue-limit 90": "pfifo limit 90",
}  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_other_policies_of_vyos(policy: str) -> None:
    """One qdisc each."""
    (link,) = tc.imported(f"set qos policy {policy}\n")
    (same,) = tc.imported(f"tc qdisc add dev X root {POLICIES[policy]}")
    assert link == same


DUMMYNET = {
    "ipfw pipe 1 config bw 10Mbit/s delay 20ms\n"
    "ipfw sched 1 config pipe 1 type fq_codel target 6 ecn\nipfw queue 1 config sched 1":
        ("10mbit", "20ms", "fq_codel target 6ms ecn"),
    "dnctl pipe 1 config bw 500KByte/s queue 100KB": ("4mbit", None, "bfifo limit 102400"),
    "pipe 1 config bw 2mbit\nqueue 9 config pipe 1 codel target 10ms weight 4":
        ("2mbit", None, "codel limit 50 target 10ms noecn"),
    "/sbin/ipfw -q pipe 1 config bw 9000 type fq_pie limit 300":
        ("9kbit", None, "fq_pie limit 300 noecn"),
    "pipe 1 config bw 1Gbit/s pie tupdate 30 ecn queue 99":
        ("1gbit", None, "pie limit 99 tupdate 30ms ecn"),
    "pipe 1 config delay 7": (None, "7ms", "pfifo limit 50"),
}  # fmt: skip


@pytest.mark.parametrize("text", DUMMYNET)
def test_pipes_of_dummynet(text: str) -> None:
    """Rate, delay, and the discipline of the scheduler or the queue; ECN is off by default."""
    (link,) = tc.imported(text)
    rate, delay, words = DUMMYNET[text]
    (same,) = tc.imported(f"tc qdisc add dev pipe1 root {words}")
    assert (link["dev"], link["rate"], link["delay"]) == ("pipe1", rate, delay)
    assert (link["qdisc"], link["lost"]) == (same["qdisc"], same["lost"])


def test_masks_and_losses_of_dummynet() -> None:
    """A mask is named as lost, a loss rate is the loss of the link, a burst is the shaper's."""
    text = "pipe 3 config mask dst-ip 0xffffffff all bw 3Mbit/s plr 0.1 burst 30KB buckets 64\n"
    (link,) = tc.imported(text)
    assert (link["rate"], link["loss"], link["burst"]) == ("3mbit", 0.1, "30720B")
    assert {"pipe 3 mask dst-ip 0xffffffff all", "pipe 3 buckets 64"} <= set(link["lost"])


OPNSENSE = """<?xml version="1.0"?>
<opnsense><OPNsense><TrafficShaper version="1.0.3">
<pipes>
 <pipe uuid="a"><number>10000</number><enabled>1</enabled><bandwidth>50</bandwidth>
  <bandwidthMetric>Mbit</bandwidthMetric><queue/><mask>none</mask><scheduler>fq_codel</scheduler>
  <codel_enable>0</codel_enable><codel_ecn_enable>1</codel_ecn_enable><codel_target>8</codel_target>
  <fqcodel_quantum>300</fqcodel_quantum><delay/></pipe>
 <pipe uuid="b"><number>10001</number><enabled>1</enabled><bandwidth>9</bandwidth>
  <bandwidthMetric>Mbit</bandwidthMetric><queue>70</queue><mask>none</mask><scheduler/></pipe>
 <pipe uuid="c"><number>10002</number><enabled>0</enabled></pipe>
</pipes>
<queues><queue><number>10000</number><enabled>1</enabled><pipe>b</pipe><weight>100</weight>
  <mask>none</mask><codel_enable>1</codel_enable></queue></queues>
</TrafficShaper></OPNsense></opnsense>
"""


def test_config_xml_of_opnsense() -> None:
    """Enabled pipes, with the queue that names its pipe by identifier."""
    fair, plain = tc.imported(OPNSENSE)
    assert (fair["dev"], fair["rate"]) == ("pipe10000", "50mbit")
    assert fair["qdisc"]["target"] == "8ms"
    assert fair["qdisc"].get("ecn", True) is True
    assert (plain["rate"], plain["qdisc"]["name"]) == ("9mbit", "codel")
    assert plain["qdisc"]["limit"] == "70p"


ROUTEROS = """\
# by RouterOS 7.16
/queue type
add fq-codel-ecn=no fq-codel-limit=1000 fq-codel-quantum=300 fq-codel-target=8ms \\
    kind=fq-codel name=fq
add kind=pcq name=unused pcq-rate=1M
/queue simple
add limit-at=1M/1M max-limit=10M/50M name="wan 1" queue=fq/default-small \\
    target=ether1
add disabled=yes name=off queue=unused
/ip firewall filter
add action=accept chain=input
"""


def test_a_simple_queue_of_routeros() -> None:
    """Upload and download are two links; a key without effect is named with its line."""
    up, down = tc.imported(ROUTEROS)
    assert (up["dev"], up["rate"], up["burst"]) == ("wan_1-up", "10mbit", "125kB")
    assert (up["qdisc"]["name"], up["qdisc"]["quantum"]) == ("fq_codel", "300B")
    assert up["qdisc"]["ecn"] is False
    assert (down["dev"], down["rate"]) == ("wan_1-down", "50mbit")
    assert down["qdisc"] == {"name": "droptail", "limit": "10p"}
    assert "line 7: /queue simple wan 1: limit-at=1M/1M" in up["lost"]


TYPES = {
    "kind=cake name=c cake-bandwidth=20M cake-diffserv=besteffort cake-flowmode=dual-srchost "
    "cake-overhead=44 cake-atm=ptm cake-rtt=50ms cake-ack-filter=filter cake-wash=yes":
        "cake bandwidth 20mbit besteffort dual-srchost overhead 44 ptm rtt 50ms ack-filter wash",
    "kind=cake name=c cake-overhead-scheme=docsis cake-mpu=64 cake-memlimit=4.0MiB":
        "cake docsis mpu 64 memlimit 4mb",
    "kind=codel name=c codel-limit=300 codel-interval=200ms codel-ecn=yes":
        "codel limit 300 interval 200ms ecn",
    "kind=sfq name=c sfq-allot=3000": "sfq quantum 3000",
    "kind=pfifo name=c pfifo-limit=80": "pfifo limit 80",
    "kind=pfifo name=c": "pfifo limit 50",
}  # fmt: skip


@pytest.mark.parametrize("words", TYPES)
def test_types_of_routeros(words: str) -> None:
    """Alone, or in a tree with a rate."""
    (link,) = tc.imported(f"/queue type add {words}\n")
    (same,) = tc.imported(f"tc qdisc add dev c root {TYPES[words]}")
    assert link == same
    tree = "/queue tree\nadd max-limit=2500k name=up parent=ether1 queue=c bucket-size=0.2\n"
    (link,) = tc.imported(f"/queue type\nadd {words}\n{tree}")
    assert (link["dev"], link["rate"], link["burst"]) == ("up", "2500kbit", "62500B")
    assert link["qdisc"] == same["qdisc"]


REFUSED = {
    "set qos policy shaper W default bandwidth '90%'\n": "shaper W: bandwidth is missing",
    "set qos policy shaper W bandwidth auto\n": "shaper W: bandwidth auto is a share of the speed",
    "set qos policy shaper W bandwidth 9mb\n": "bandwidth 9mb is not a rate, like 20mbit",
    "set qos policy shaper W bandwidth 9mbit\n": "shaper W: default is missing",
    "set qos policy round-robin R default queue-limit 5\n": "round-robin R: this kind of policy",
    "set qos policy cake C flow-isolation some\n": "cake C: flow-isolation some is unknown",
    "set qos policy fq-codel F queue-limit 'x\n": "line 1: no closing quotation",
    "set qos interface eth0 egress W\n": "no policy in qos policy",
    "qos {\n policy {\n": "a brace is not closed",
    "qos {\n}\n}\n": "line 3: a brace that is not open",
    "pipe 1 config bw 3Xbit/s\n": "pipe 1: bw 3Xbit/s is not a rate, like 10Mbit/s",
    "pipe 1 config bw\n": "pipe 1: bw has no value",
    "pipe 1 config type rmq\n": "pipe 1: type rmq is not read",
    "pipe 1 config delay soon\n": "pipe 1: delay soon is not a time, like 5ms",
    "pipe 1 config queue 5x\n": "pipe 1: queue 5x is not a size, like 50 or 100KB",
    "pipe 1 config plr 10%\n": "pipe 1: plr 10% is not a share from 0 to 1",
    "pipe 1 config codel queue 9KB\n": "queue 9KB: codel of tc has a limit in packets",
    "queue 1 config pipe 1\n": "there is no pipe, like pipe 1 config bw 10Mbit/s",
    "pipe 1 config bw 1Mbit/s\nqueue 1 config pipe 1\nqueue 2 config pipe 1\n":
        "queue 1, queue 2: several queues share pipe 1; leave one",
    "00001:  10.000 Mbit/s    0 ms burst 0\n": "00001: .* output of ipfw is not read",
    "<x><TrafficShaper></x>\n": "config.xml: mismatched tag",
    "/queue type\nadd kind=pcq name=a\n": "type a: kind=pcq is not read",
    "/queue type\nadd kind=cake\n": "line 2: /queue type add: name is missing",
    "/queue simple\nadd name=x max-limit=abc\n": "queue simple x: max-limit=abc is not a rate",
    "/queue simple\nadd name=x queue=nn/nn\n": "queue simple x: queue=nn: there is no such type",
    "/queue simple\nset 0 max-limit=1M\n": "line 2: set is not read; write add",
    "/queue tree\nadd name=a parent=global\nadd name=b parent=a\n": "parent=a: a queue below",
    "/queue tree\nadd name=a max-limit=1M bucket-size=x\n": "bucket-size=x is not a number",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_read_is_named(text: str) -> None:
    """In one line, with the key."""
    with pytest.raises(InputError, match=REFUSED[text]) as error:
        tc.imported(text)
    assert "\n" not in str(error.value)


def test_random_parts_of_configurations_are_read_or_refused() -> None:
    """A text that ends too early, or lacks lines, gives links or InputError."""
    outcomes: list[Any] = []
    for text in (VYOS, CLASSES, *DUMMYNET, OPNSENSE, ROUTEROS):
        lines = text.splitlines()
        parts = [text[:end] for end in range(5, len(text), 7)]
        parts += ["\n".join(lines[:n] + lines[n + 1 :]) for n in range(len(lines))]
        for part in parts:
            try:
                outcomes.append(len(tc.imported(part)))
            except InputError:
                outcomes.append("refused")
    assert {1, "refused"} <= set(outcomes)
