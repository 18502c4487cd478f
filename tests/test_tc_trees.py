"""Trees of tc: every class and filter of a script becomes a part of a scenario, and back."""

import json
import os
import random
import re
import tomllib
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn import InputError, tc
from sojourn_lab.validation.linux import user_mode
from support import uml

SUBSCRIBERS = """
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 18mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 3mbit ceil 18mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit ceil 18mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 7mbit ceil 16mbit prio 2
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 60
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel limit 1200
tc qdisc add dev eth0 parent 1:30 handle 30: sfq perturb 10
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip src 192.0.2.44 flowid 1:20
"""


def test_a_script_with_classes_is_a_scenario_that_runs(tmp_path: Path, sojourn: Command) -> None:
    """Calls by DSCP, a host by address, the rest by default: each is in its class."""
    script = tmp_path / "shaper.sh"
    script.write_text(SUBSCRIBERS)
    code, out, _ = sojourn("tc", "import", script, "--strict")
    assert code == 0
    assert "# classes: 1:1 is 1, 1:10 is 2, 1:20 is 3, 1:30 is 4\n" in out
    links = tomllib.loads(out)["links"]
    assert links["eth0"]["rate"] == "18mbit"
    flows = [
        sj.Flow(name="call", path=["eth0"], dscp="EF", source=sj.source.Cbr(rate="1mbit")),
        sj.Flow(name="backup", path=["eth0"], sender="192-0-2-44"),
        sj.Flow(name="rest", count=2, path=["eth0"]),
    ]
    scenario = sj.Scenario(duration="20s", warmup="5s", links={"eth0": links["eth0"]}, flows=flows)
    flow = sj.simulate(scenario).flows
    assert flow["call"]["goodput_bps"] > 0.85e6  # 172 of 200 bytes are data
    assert 8e6 < flow["backup"]["goodput_bps"] < 12e6
    rest = sum(flow[name]["goodput_bps"] for name in ("rest.0", "rest.1"))
    assert 6e6 < rest < 10e6


PORTS = """
tc qdisc add dev eth0 root handle 1: htb default 40
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 1mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 2mbit ceil 2mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 3mbit ceil 3mbit
tc class add dev eth0 parent 1:1 classid 1:40 htb rate 4mbit ceil 4mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x10/0xf0 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 443 0xffff flowid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 3 flower ip_proto udp flowid 1:30
"""


def test_marks_ports_and_protocols_select_classes(tmp_path: Path, sojourn: Command) -> None:
    """Each flow has the rate of the class that the filters choose, and requests and answers too."""
    script = tmp_path / "ports.sh"
    script.write_text(PORTS)
    code, out, _ = sojourn("tc", "import", script, "--strict")
    assert code == 0
    up = tomllib.loads(out)["links"]["eth0"]
    flows = [
        sj.Flow(name="marked", path=["eth0"], mark=0x13, receiver_port=443),
        sj.Flow(name="tls", path=["eth0"], receiver_port=443),
        sj.Flow(name="quic", path=["eth0"], tcp={"name": "cubic", "profile": "quic"}),
        sj.Flow(name="other", path=["eth0"], receiver_port=80),
        # Its acknowledgements have the ports the other way round: they go to port 443 too.
        sj.Flow(name="answers", path=["down"], return_path=["eth0"], sender_port=443),
    ]
    links = {"eth0": up, "down": {"rate": "1gbit", "qdisc": "droptail"}}
    scenario = sj.Scenario(duration="20s", warmup="5s", links=links, flows=flows, packet_log=True)
    result = sj.simulate(scenario)
    goodput = {name: flow["goodput_bps"] / 1e6 for name, flow in result.flows.items()}
    assert 0.9 < goodput["marked"] < 1
    assert goodput["tls"] < 2
    assert 2.6 < goodput["quic"] < 3
    assert 3 < goodput["other"] < 4
    assert result.scenario["flows"][0]["mark"] == 0x13
    # The class of the acknowledgements is the one of tls: both share 2 Mbit/s on eth0.
    log = result.links["eth0"].packet_log
    left = (log.fate == 0) & (log.left_s > 5)
    sent = {
        name: float(log.size_bytes[(log.flow == i) & left].sum()) * 8 / 15e6
        for i, name in enumerate(result.flows)
    }
    assert 1.8 < sent["tls"] + sent["answers"] < 2.05
    assert sent["answers"] > 0.02


def test_headers_reach_filters_of_inner_classes_and_new_filters(tmp_path: Path) -> None:
    """Web users open connections during the run; a change brings filters by protocol."""
    link = {
        "rate": "10mbit",
        "qdisc": {
            "name": "prio",
            "flows": 2,
            "children": ["droptail", "prio(flows=2, filters=0(protocol=udp) 1)"],
            "filters": ["0(sport=443)", "1"],
        },
    }
    flows = [
        sj.Flow(name="web", count=4, path=["down"], sender_port=443, source="web"),
        sj.Flow(name="call", path=["down"], source="call"),
        sj.Flow(name="bulk", path=["down"]),
    ]
    new = {"at": "10s", "links": {"down": {"qdisc": {"filters": ["1(protocol=tcp)", "0"]}}}}
    scenario = sj.Scenario(duration="20s", links={"down": link}, flows=flows, changes=[new])
    one, two = (sj.simulate(scenario, threads=n).summary for n in (1, 2))
    assert one == two


def test_one_class_can_still_be_chosen(sojourn: Command) -> None:
    """`--class` gives the link of that class."""
    (link,) = tc.imported(SUBSCRIBERS, leaf="1:20")
    assert (link["qdisc"]["name"], link["qdisc"]["limit"]) == ("fq_codel", "1200p")
    with pytest.raises(InputError, match="unknown class"):
        tc.imported(SUBSCRIBERS, leaf="1:40")


def test_a_lost_filter_is_refused_by_strict(tmp_path: Path, sojourn: Command) -> None:
    """With its words and the reason."""
    script = tmp_path / "ttl.sh"
    rule = "protocol ip u32 match ip ttl 9 0xff flowid 1:20"
    script.write_text(f"{SUBSCRIBERS}tc filter add dev eth0 parent 1: {rule}\n")
    code, _, error = sojourn("tc", "import", script, "--strict")
    assert code == 2
    assert "u32 match ip ttl 9 0xff flowid 1:20: ip ttl: sojourn has no filter by it" in error


def test_a_policer_becomes_a_link(sojourn: Command) -> None:
    """At the ingress of a device, under its own name."""
    script = (
        "tc qdisc add dev wan handle ffff: ingress; tc filter add dev wan parent ffff: matchall "
        "police rate 8mbit burst 64k drop"
    )
    code, out, _ = sojourn("tc", "import", script, "--strict", "--rate", "100mbit")
    assert code == 0
    link = tomllib.loads(out)["links"]["wan_ingress"]
    assert link == {
        "rate": "100mbit",
        "qdisc": {"name": "police", "rate": "8mbit", "burst": "65536B"},
    }


def test_impairments_return_from_an_export() -> None:
    """All keys of a bad link that netem and stab have."""
    link = {
        "rate": "9mbit", "delay": "20ms", "in_flight_limit": "800p", "overhead": "-4 mpu 64 atm",
        "jitter": {"size": "3ms", "distribution": "normal", "correlation": 0.25},
        "loss": {"p13": 0.02, "p31": 0.3, "p32": 0.2, "p23": 0.4, "p14": 0.01, "ecn": True},
        "duplicate": {"probability": 0.01, "correlation": 0.1}, "corrupt": 0.002,
        "reorder": {"probability": 0.25, "correlation": 0.5, "gap": 5},
        "slot": {"min": "1ms", "max": "2ms", "packets": 7, "bytes": "9kB"}, "qdisc": "tc: pie",
    }  # fmt: skip
    (back,) = tc.imported(tc.export(link))
    keys = {key: back[key] for key in tc.LINK if back[key] is not None}
    assert back["lost"] == []
    assert tc._canonical({"link": keys}) == tc._canonical({"link": link})


def test_a_tree_in_a_line_of_a_scenario() -> None:
    """A script after `tc:` is a discipline, without the rate of a link."""
    script = "tc: " + SUBSCRIBERS.strip()
    (link,) = tc.imported(SUBSCRIBERS)
    parsed = json.loads(json.dumps(tc._canonical({"a": {"rate": "18mbit", "qdisc": script}})))
    whole = tc._canonical({"a": {"rate": "18mbit", "qdisc": link["qdisc"]}})
    assert parsed == whole


def test_other_formats_have_no_filters() -> None:
    """Networkd has the classes; a format with one qdisc refuses them."""
    (link,) = tc.imported(SUBSCRIBERS)
    tree = {"rate": "18mbit", "qdisc": link["qdisc"]}
    assert "# filter replace dev eth0 parent 1:" in tc.export(tree, form="networkd")
    with pytest.raises(InputError, match="htb has classes, which networkmanager does not have"):
        tc.export(tree, form="networkmanager")


LEAVES = (
    "pfifo limit 77", "bfifo limit 40000", "fq_codel limit 900", "codel ecn", "pie limit 500",
    "sfq perturb 10", "red limit 400000 avpkt 1000", "cake bandwidth 3mbit", "fq limit 800",
    "tbf rate 2mbit burst 9k limit 30k", "hhf", "sfb",
)  # fmt: skip
RULES = (
    "u32 match ip dsfield 0xb8 0xfc", "u32 match ip dst 192.0.2.9", "u32 match u16 0 0xff00 at 2",
    "u32 match u8 0x03 0x03 at 1", "u32 match u32 0 0", "u32 match ip protocol 17 0xff",
    "u32 match ip dport 443 0xffff", "u32 match ip sport 4096 0xf000",
    "u32 match mark 5 0xffffffff",
)  # fmt: skip
KINDS = ("htb", "hfsc", "prio", "drr", "qfq")
TREES = int(os.environ.get("SOJOURN_TREES", "4"))


class Trees:
    """Random scripts of trees with classes, qdiscs below them and filters."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.next = 1
        self.lines: list[str] = []

    def add(self, what: str, words: str) -> None:
        """Add a command."""
        self.lines.append(f"tc {what} add dev dum0 {words}")

    def tree(self, place: str, depth: int) -> None:
        """Add a qdisc at a place, with what is below it."""
        handle, self.next = f"{self.next:x}", self.next + 1
        if depth == 0 or (depth < 3 and self.draw.random() < 0.3):
            self.add("qdisc", f"{place} handle {handle}: {self.draw.choice(LEAVES)}")
            return
        count = self.draw.randint(2, 5)
        kind = self.draw.choice(KINDS)
        leaves = list(range(1, count + 1))
        if kind == "prio":
            priomap = " ".join(str(self.draw.randrange(count)) for _ in range(16))
            self.add("qdisc", f"{place} handle {handle}: prio bands {count} priomap {priomap}")
        elif kind == "drr":
            self.add("qdisc", f"{place} handle {handle}: drr")
            for minor in leaves:
                # tc prints sizes near a multiple of 1024 as that.
                quantum = self.draw.choice([700, 1514, 3000, 4500, 9000])
                self.add(
                    "class", f"parent {handle}: classid {handle}:{minor} drr quantum {quantum}"
                )
        elif kind == "qfq":
            self.add("qdisc", f"{place} handle {handle}: qfq")
            for minor in leaves:
                words = (
                    f"weight {self.draw.randint(1, 1024)} maxpkt {self.draw.randint(512, 65536)}"
                )
                self.add("class", f"parent {handle}: classid {handle}:{minor} qfq {words}")
        else:
            inner = count > 2 and self.draw.random() < 0.5
            default = self.draw.choice(leaves[inner:])
            self.add("qdisc", f"{place} handle {handle}: {kind} default {default}")
            for minor in leaves:
                above = "1" if inner and minor > 1 else ""
                words = self.rates(kind)
                self.add(
                    "class", f"parent {handle}:{above} classid {handle}:{minor} {kind} {words}"
                )
            leaves = leaves[inner:]
        for minor in leaves:
            if self.draw.random() < 0.5:
                rule = f"pref {minor} {self.draw.choice(RULES)} flowid {handle}:{minor}"
                self.add("filter", f"parent {handle}: protocol ip {rule}")
            if self.draw.random() < 0.7:
                self.tree(f"parent {handle}:{minor}", depth - 1)

    def rates(self, kind: str) -> str:
        """Return the words of a class."""
        rate = self.draw.randint(1, 30)
        if kind == "hfsc":
            return self.draw.choice([f"ls m2 {rate}mbit", f"ls m2 {rate}mbit ul m2 40mbit"])
        more = self.draw.choice(["", " prio 3", " quantum 2000", " burst 60k cburst 60k"])
        return f"rate {rate}mbit ceil {rate + self.draw.randint(0, 9)}mbit{more}"


def _scripts() -> list[str]:
    scripts = []
    for seed in range(TREES):
        trees = Trees(seed)
        trees.tree("root", 3)
        scripts.append("\n".join(trees.lines))
    return scripts


def _parts(text: str) -> tuple[str, list[float]]:
    """Return a discipline with a sign for each number, and its numbers.

    Without the parameters that the kernel rounds to its clock, or to 2^-16: buckets of htb,
    t_update of pie, d1 and d2 of sfb.
    """
    text = re.sub(r'"?(bursts|t_update|d1|d2)"?[=:] ?("[^"]*"|[^,)}]*)(, ?)?', "", text)
    text = re.sub(r'"(target|interval)": "\d+us"', r'"\1": ""', text)
    number = r"\d+(?:\.\d+)?"
    return re.sub(number, "#", text), [float(one) for one in re.findall(number, text)]


KERNEL_FILTERS = {
    "u32 match ip dport 22 0xffff match ip protocol 6 0xff": "0(protocol=tcp, destination_port=22)",
    "u32 match ip sport 4096 0xf000 match ip tos 0xb8 0xfc": "0(dscp=46, source_port=4096-8191)",
    "u32 match u16 53 0xffff at nexthdr+2": "0(destination_port=53)",
    "u32 match mark 0x10 0xf0": "0(mark=16/240)",
    "handle 6/0xf fw": "0(mark=6/15)",
    "flower ip_proto udp dst_port 53": "0(protocol=udp, destination_port=53)",
    "flower ip_proto udp src_port 6000-6063": "0(protocol=udp, source_port=6000-6063)",
    "basic match 'meta(nf_mark eq 7)'": "0(mark=7)",
    "basic match 'cmp(u16 at 2 layer transport eq 22) and cmp(u8 at 9 layer network eq 17)'":
        "0(protocol=udp, destination_port=22)",
}  # fmt: skip
"""Filters of all kinds, with the filters of the discipline."""


def test_filters_are_read_as_the_kernel_prints_them(tmp_path: Path) -> None:
    """A script, the output of tc as text and its JSON give the same filters; nothing is lost."""
    uml.require(module=False)
    commands = ["tc qdisc add dev dum0 root handle 1: prio"] + [
        f"tc filter add dev dum0 parent 1: protocol ip pref {i + 1} {words} flowid 1:1"
        for i, words in enumerate(KERNEL_FILTERS)
    ]
    load = [
        f'insmod "$modules"/net/sched/{module}.ko'
        for module in ("cls_u32", "cls_fw", "cls_flower", "cls_basic", "em_cmp", "em_meta")
    ]
    show = [
        line
        for form in ("", "-j ")
        for line in (
            f"echo '== {form}'",
            f"tc {form}qdisc show dev dum0",
            f"tc {form}filter show dev dum0",
        )
    ]
    out = user_mode.run("\n".join([*load, *commands, *show]), tmp_path)
    _, text, as_json = re.split("^== .*$", out.split("END")[0], flags=re.M)
    for source in ("\n".join(commands), text, as_json):
        (link,) = tc.imported(source)
        filters = link["qdisc"]["filters"]
        assert link["lost"] == [], source
        expected = tc._canonical({"a": {"rate": "1gbit", "qdisc": {
            "name": "prio", "filters": list(KERNEL_FILTERS.values()),
        }}})["a"]["qdisc"]["filters"]  # fmt: skip
        actual = tc._canonical(
            {"a": {"rate": "1gbit", "qdisc": {"name": "prio", "filters": filters}}}
        )
        assert actual["a"]["qdisc"]["filters"] == expected, source


def test_trees_return_from_the_kernel(tmp_path: Path) -> None:
    """Parse, export, kernel, show and parse are the identity."""
    uml.require(module=False)
    first, parts = [], ['insmod "$modules"/net/sched/cls_u32.ko']
    for number, script in enumerate(_scripts()):
        (link,) = tc.imported(script)
        first.append(link["qdisc"])
        exported = tc.export(link["qdisc"], dev="dum0", rate="1gbit")
        parts += [f"echo '== {number}'", "worst=0"]
        commands = [line for line in exported.splitlines() if line.startswith("tc ")]
        parts += [f"{line} </dev/null 2>/dev/null || worst=$?" for line in commands]
        parts += ["echo exit $worst", "tc -d qdisc show | grep dum0"]
        handles = [
            line.split(" handle ")[1].split(":")[0] for line in commands if " handle " in line
        ]
        # Without a parent the kernel leaves out the classes of some inner qdiscs.
        parts += [f"tc -d class show dev dum0 parent {handle}:" for handle in handles]
        # With a parent, tc does not print it.
        parts += [
            f"tc filter show dev dum0 parent {handle}: | sed 's/^filter/filter parent {handle}:/'"
            for handle in handles
        ]
        parts.append("tc qdisc del dev dum0 root 2>/dev/null")
    out = user_mode.run("\n".join(parts), tmp_path)
    outputs = re.findall(r"^== (\d+)\nexit (\d+)\n(.*?)(?=^== |\Z)", out, re.M | re.S)
    assert len(outputs) == TREES, out[-2000:]
    for number, code, shown in outputs:
        assert code == "0", shown
        (back,) = tc.imported(shown.split("END")[0])
        sent = _canonical_text(first[int(number)])
        (shape, numbers), (expected, values) = _parts(_canonical_text(back["qdisc"])), _parts(sent)
        assert shape == expected, shown
        # A limit in bytes is rounded with its bucket.
        assert numbers == pytest.approx(values, rel=2e-3, abs=1), shown


def _canonical_text(qdisc: object) -> str:
    link = tc._canonical({"a": {"rate": "1gbit", "qdisc": qdisc}})
    return json.dumps(link["a"]["qdisc"])
