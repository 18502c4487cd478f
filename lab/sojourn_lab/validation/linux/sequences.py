"""Random sequences of tc commands: the kernel of user-mode Linux and our reader must agree.

Each sequence has 1 to 12 commands (add, replace, change, delete, link; qdiscs and classes; root,
ingress, parents and handles, wrong ones too). Compared are which commands are refused, and the
state at the end as `tc -j -d qdisc show`, `tc -d qdisc show` and `tc -d class show` print it.

    python -m sojourn_lab.validation.linux.sequences --count 2000 --seed 1
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import InputError, _sojourn
from sojourn_lab.validation.linux import user_mode

MOST = 12
"""Most commands of a sequence."""

MARK = "qdisc add dev mark0 root handle aaaa: bfifo limit 12345"
"""Qdisc of a second device, whose output divides the outputs of two sequences."""

Draw = random.Random
Words = Callable[[Draw], str]


def _some(draw: Draw, *options: str) -> str:
    """Return each option with a probability of a third, in random order."""
    chosen = [one for one in options if draw.random() < 0.34]
    draw.shuffle(chosen)
    return " ".join(chosen)


def _fifo(draw: Draw) -> str:
    return _some(draw, f"limit {draw.choice((10, 1000, '1k'))}")


def _prio(draw: Draw) -> str:
    # tc compares the entries of priomap with the bands before it.
    bands = _some(draw, f"bands {draw.choice((1, 2, 3, 5, 16, 17))}")
    maps = ("1 2 2 2", "0 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "0 7", "0 " * 17)
    return f"{bands} {_some(draw, f'priomap {draw.choice(maps)}')}"


def _red(draw: Draw) -> str:
    head = draw.choice(("limit 400000 avpkt 1000", "limit 60k avpkt 500 min 6k", "avpkt 1000"))
    flags = _some(draw, "ecn", "harddrop", "nodrop", "probability 0.1", "bandwidth 5mbit")
    return f"{head} {_some(draw, 'burst 120', 'max 90k')} {flags}"


def _choke(draw: Draw) -> str:
    head = draw.choice(("limit 1000 bandwidth 10mbit", "limit 500", "limit 300 bandwidth 1mbit"))
    return f"{head} {_some(draw, 'min 50', 'max 120', 'ecn', 'burst 200')}"


def _sfb(draw: Draw) -> str:
    return _some(draw, "limit 500", "rehash 300000", "db 30000", "max 40", "target 30",
                 "increment 0.01", "decrement 0.001", "penalty_rate 5",
                 "penalty_burst 9")  # fmt: skip


def _sfq(draw: Draw) -> str:
    return _some(draw, "limit 100", "perturb 10", "quantum 3000", "divisor 512", "divisor 500",
                 "depth 50", "headdrop", "flows 64")  # fmt: skip


def _codel(draw: Draw) -> str:
    return _some(draw, "limit 200", "target 10ms", "interval 50ms", draw.choice(("ecn", "noecn")),
                 "ce_threshold 2ms")  # fmt: skip


def _fq_codel(draw: Draw) -> str:
    flows = "flows 256" if draw.random() < 0.2 else ""
    return (
        f"{_codel(draw)} {_some(draw, 'quantum 300', 'memory_limit 4m', 'drop_batch 16')} {flows}"
    )


def _pie(draw: Draw) -> str:
    return _some(draw, "limit 300", "target 20ms", "tupdate 30ms", "alpha 4", "beta 10", "alpha 40",
                 draw.choice(("ecn", "noecn")), draw.choice(("bytemode", "nobytemode")),
                 "dq_rate_estimator")  # fmt: skip


def _cake(draw: Draw) -> str:
    return _some(
        draw, f"bandwidth {draw.choice(('10mbit', '2mbit'))}", "unlimited",
        draw.choice(("besteffort", "diffserv4", "diffserv8", "precedence")),
        draw.choice(("flows", "hosts", "dual-srchost", "flowblind", "triple-isolate")),
        draw.choice(("nat", "nonat")), draw.choice(("wash", "nowash")),
        draw.choice(("ack-filter", "no-ack-filter", "ack-filter-aggressive")),
        draw.choice(("rtt 50ms", "lan", "satellite")), "mpu 64", "overhead 44", "atm", "ptm",
        draw.choice(("docsis", "raw", "noatm", "ether-vlan", "conservative")), "memlimit 4m",
        draw.choice(("ingress", "egress")), draw.choice(("split-gso", "no-split-gso")),
    )  # fmt: skip


def _fq(draw: Draw) -> str:
    return _some(draw, "limit 500", "flow_limit 50", "quantum 2000", "initial_quantum 9000",
                 "maxrate 5mbit", draw.choice(("pacing", "nopacing")), "refill_delay 20ms",
                 "low_rate_threshold 1mbit", "orphan_mask 255", "ce_threshold 3ms", "buckets 512",
                 "horizon 5s", draw.choice(("horizon_drop", "horizon_cap")),
                 "timer_slack 20us")  # fmt: skip


def _hhf(draw: Draw) -> str:
    return _some(draw, "limit 500", "quantum 3000", "hh_limit 512", "reset_timeout 20ms",
                 "admit_bytes 65536", "admit_bytes 64k", "evict_timeout 2s",
                 "non_hh_weight 3")  # fmt: skip


def _tbf(draw: Draw) -> str:
    head = draw.choice(("rate 5mbit burst 10k", "rate 1mbit burst 5kb", "rate 2mbit"))
    tail = draw.choice(("limit 30k", "latency 50ms", "", "limit 9000 latency 5ms", "lat 100ms"))
    return f"{head} {tail} {_some(draw, 'peakrate 8mbit mtu 2k', 'peakrate 9mbit', 'mpu 64')}"


def _netem(draw: Draw) -> str:
    return _some(
        draw, draw.choice(("delay 10ms", "delay 20ms 2ms", "delay 10ms 1ms 25%", "lat 5ms")),
        draw.choice(("loss 1%", "loss random 2% 10%", "loss gemodel 1% 10% 70% 0.5%", "drop 3%",
                     "loss state 1% 90%", "loss gemodel 2%")),
        "duplicate 1%", "corrupt 0.5%", draw.choice(("reorder 25%", "reorder 10% 50% gap 3")),
        draw.choice(("rate 1mbit", "rate 2mbit 20 100 5")), "limit 500", "ecn",
        draw.choice(("slot 100us 200us", "slot 1ms 2ms packets 5 bytes 3000")),
    )  # fmt: skip


def _cbs(draw: Draw) -> str:
    return _some(draw, "hicredit 153", "locredit -1389", "sendslope -901312", "idleslope 98688",
                 "hi 20", "idleslope 5", "locredit 7")  # fmt: skip


def _gred(draw: Draw) -> str:
    flags = _some(draw, "ecn", "harddrop")
    if draw.random() < 0.5:
        words = f"setup vqs {draw.choice((1, 3, 16, 17))} default {draw.choice((0, 0, 2, 5))}"
        return f"{words} {_some(draw, 'grio', 'limit 50k')} {flags}"
    head = f"{draw.choice(('vq', 'DP'))} {draw.choice((0, 0, 1, 2, 9))}"
    sizes = draw.choice(
        (
            "limit 60k min 15k max 45k avpkt 1000",
            "limit 40k min 9k avpkt 900",
            "limit 90k min 20k max 20k avpkt 500",
            "limit 9k min 9k max 8k avpkt 200",
        )
    )
    more = _some(draw, "prio 3", "prio 0", "burst 40", "probability 0.1", "bandwidth 1mbit")
    return f"{head} {sizes} {more} {flags}"


def _htb(draw: Draw) -> str:
    return _some(draw, f"default {draw.choice(('10', '0x20', '1'))}", "r2q 20", "direct_qlen 50")


def _hfsc(draw: Draw) -> str:
    return _some(draw, "default 10", "default 0x20")


QDISCS: dict[str, Words] = {
    "pfifo": _fifo, "bfifo": _fifo, "pfifo_head_drop": _fifo, "prio": _prio, "red": _red,
    "choke": _choke, "sfb": _sfb, "sfq": _sfq, "codel": _codel, "fq_codel": _fq_codel,
    "pie": _pie, "cake": _cake, "fq": _fq, "hhf": _hhf, "tbf": _tbf, "netem": _netem,
    "htb": _htb, "hfsc": _hfsc, "drr": lambda _: "", "qfq": lambda _: "", "skbprio": _fifo,
    "cbs": _cbs, "gred": _gred,
}  # fmt: skip
"""Qdiscs of the kernel of user-mode Linux that have words here."""

CLASSFUL = ("htb", "htb", "hfsc", "drr", "qfq", "prio", "tbf", "netem", "red", "sfb", "gred")
"""Qdiscs at the root of most sequences."""


CLASSED = ("htb", "hfsc", "drr", "qfq")
"""Qdiscs whose classes are made by commands."""


def _curve(draw: Draw) -> str:
    return draw.choice(("m2 5mbit", "rate 2mbit", "m1 8mbit d 10ms m2 1mbit",
                        "umax 1500 dmax 10ms rate 1mbit"))  # fmt: skip


def _class_words(kind: str, draw: Draw) -> str:
    if kind == "htb":
        tail = _some(draw, "ceil 20mbit", "prio 2", "burst 15k", "cburst 20k", "quantum 3000")
        return f"rate {draw.choice(('5mbit', '800kbit'))} {tail}"
    if kind == "hfsc":
        return " ".join(
            f"{name} {_curve(draw)}" for name in ("rt", "ls", "sc", "ul") if draw.random() < 0.4
        )
    if kind == "qfq":
        return _some(draw, f"weight {draw.choice((1, 30, 1024, 0, 1025))}",
                     f"maxpkt {draw.choice((512, 1600, 65536, 511, 65537))}")  # fmt: skip
    return _some(draw, "quantum 3000", "quantum 500")


def _qdisc_command(draw: Draw) -> str:
    verb = draw.choice(("add", "add", "replace", "replace", "change", "del", "del", "link"))
    place = draw.choice(
        ("root", "root", "parent 1:1", "parent 1:2", "parent 1:10", "parent 1:", "parent 2:1",
         "parent 10:1", "parent 9:1", "parent root", "parent 0x1:0x10", "ingress", "")
    )  # fmt: skip
    if place == "ingress":
        return f"qdisc {draw.choice(('add', 'del', 'replace'))} dev dum0 {draw.choice(HOOKS)}"
    if verb == "del":
        return f"qdisc del dev dum0 {place or 'root'}{draw.choice(('', '', ' handle 1:', ' pie'))}"
    handle = draw.choice(("", "", "handle 1:", "handle 2:", "handle 10:", "handle 0x2"))
    kind = draw.choice(list(QDISCS))
    words = QDISCS[kind](draw)
    named = f"{kind} {words}" if verb != "link" or draw.random() < 0.3 else ""
    return f"qdisc {verb} dev dum0 {place} {handle} {draw.choice(ESTIMATORS)} {named}"


HOOKS = ("ingress", "clsact", "ingress", "handle ffff: ingress")
ESTIMATORS = ("", "", "", "", "est 1sec 8sec", "estimator 500ms 2s")


def _class_command(draw: Draw, kind: str) -> str:
    verb = draw.choice(("add", "add", "add", "replace", "change", "del"))
    parent = draw.choice(("parent 1:", "parent 1:", "parent 1:1", "parent 1:2", "parent 2:", "root",
                          "parent 9:", ""))  # fmt: skip
    classid = draw.choice(
        ("classid 1:1", "classid 1:2", "classid 1:10", "classid 1:20", "classid 2:1", "classid :10")
    )
    if verb == "del":
        return f"class del dev dum0 {classid}"
    return f"class {verb} dev dum0 {parent} {classid} {kind} {_class_words(kind, draw)}"


def sequence(draw: Draw) -> list[str]:
    """Return the commands of a random sequence, without `tc`."""
    commands = []
    root = ""
    kind = draw.choice(CLASSED)
    if draw.random() < 0.7:
        root = draw.choice((kind, kind, kind, *CLASSFUL))
        commands.append(f"qdisc add dev dum0 root handle 1: {root} {QDISCS[root](draw)}")
        kind = root if root in CLASSED else kind
    for _ in range(draw.randint(1, MOST) - len(commands)):
        if root == "gred" and draw.random() < 0.7:
            verb = draw.choice(("change", "change", "replace", "add"))
            commands.append(f"qdisc {verb} dev dum0 root gred {_gred(draw)}")
        elif draw.random() < 0.45:
            commands.append(_class_command(draw, kind))
        else:
            commands.append(_qdisc_command(draw))
    return [" ".join(command.split()) for command in commands] or ["qdisc del dev dum0 root"]


@dataclass
class Answer:
    """The kernel's answers to a sequence, and its state at the end."""

    refused: list[bool]
    json: str
    text: str


def ask(sequences: list[list[str]], folder: Path) -> list[Answer]:
    """Return the kernel's answers."""
    lines, places = [MARK], []
    for commands in sequences:
        first = len(lines) + 1
        places.append(range(first, first + len(commands)))
        lines += [*commands, "qdisc show dev dum0", "class show dev dum0", "qdisc show dev mark0"]
        lines += [
            "qdisc del dev dum0 root",
            "qdisc del dev dum0 ingress",
            "qdisc del dev dum0 clsact",
        ]
    (folder / "batch").write_text("\n".join(lines) + "\n")
    run = f"cd {folder}; ip link add mark0 type dummy; ip link set mark0 up\n"
    for name, flag in (("json", "-j"), ("text", "")):
        run += f"tc {flag} -d -force -batch batch >{name}.out 2>{name}.err </dev/null\n"
        run += "tc qdisc del dev mark0 root\n"
    user_mode.run(run, folder, limit_s=1800)
    errors = (folder / "json.err").read_text(errors="replace")
    failed = {int(number) for number in re.findall(r"^Command failed batch:(\d+)", errors, re.M)}
    parts = {name: _parts((folder / f"{name}.out").read_text()) for name in ("json", "text")}
    return [
        Answer([line in failed for line in place], as_json, as_text)
        for place, as_json, as_text in zip(places, parts["json"], parts["text"], strict=True)
    ]


def _parts(out: str) -> Iterator[str]:
    """Yield the output before each mark."""
    part: list[str] = []
    for line in out.splitlines():
        if "aaaa:" in line:
            yield "\n".join(part)
            part = []
        else:
            part.append(line)


State = dict[str, Any]

HIDDEN = {
    "red": {"burst", "avpkt", "probability", "bandwidth", "Scell_log", "Plog", "limit-default"},
    "choke": {"burst", "avpkt", "probability", "bandwidth", "Scell_log", "Plog"},
    "tbf": {"latency"},
    "netem": {"seed", "distribution"},
    "htb": {"direct_packets_stat", "ver", "debug", "direct_qlen", "level", "quantum", "mtu",
            "burst", "cburst", "linklayer"},
    "cake": {"rate", "preset", "memlimit"},
    "gred": {"Scell_log"},
    "sfq": {"flows", "depth"},
    "fq": {"buckets"},
}  # fmt: skip
"""Words that the output does not have, or that the kernel computes from the device."""

UNSHOWN = {("JSON qdiscs", "peakrate"), ("JSON qdiscs", "mtu"), ("text classes", "prio")}
"""Words that only one of the outputs has, or not for every class."""

KNOWN = (" is a class of ", "raw keeps the length")
"""Parts of refusals of what Linux accepts: a class of another kind, whose words the kernel reads as
words of its own kind, and an overhead of cake together with raw, which ignores it."""

JIFFY_NS = 10_000_000
"""Clock tick of user-mode Linux, to which PIE rounds its interval up."""


def differences(commands: list[str], answer: Answer) -> list[str]:
    """Return what our reader says otherwise than the kernel."""
    ours = json.loads(_sojourn.tc_state("\n".join(f"tc {one}" for one in commands)))
    rows = [
        f"{command}: {'refused' if refused else 'accepted'} by the kernel, ours: {mine['error']}"
        for command, refused, mine in zip(commands, answer.refused, ours["commands"], strict=True)
        if refused != (mine["error"] is not None)
    ]
    if rows:
        return [] if any(known in rows[0] for known in KNOWN) else rows[:1]
    devices = [one for one in ours["devices"] if one["dev"] == "dum0"]
    here = _state(devices[0] if devices else {"qdiscs": [], "classes": []})
    for name, output in (("text", answer.text), ("JSON", _qdiscs_of(answer.json))):
        try:
            read = json.loads(_sojourn.tc_state(output))
        except InputError as error:
            return [f"{name} is not read: {error}\n{output}"]
        rows += [f"{one['text']}: {one['error']}" for one in read["commands"]]
        rows += [f"{name} has lost words: {one}" for one in read["lost"]]
        shown = read["devices"]
        there = _state(shown[0] if shown else {"qdiscs": [], "classes": []})
        keys = ("qdiscs",) if name == "JSON" else ("qdiscs", "classes")
        for key in keys:
            rows += _compare(f"{name} {key}", here[key], there[key])
    return rows


def _qdiscs_of(output: str) -> str:
    """Return the JSON of an output, without the text of classes."""
    return "\n".join(line for line in output.splitlines() if line.startswith("["))


def _state(device: State) -> State:
    """Return qdiscs and classes by identifier; handles of the kernel are numbered in order."""
    qdiscs = [one for one in device["qdiscs"] if one["handle"] != "0:"]
    own = sorted(int(one["handle"][:-1], 16) for one in qdiscs if one["handle"] > "8000:")
    own = [one for one in own if one < 0xFFFF]
    names = {f"{handle:x}": f"auto{i}" for i, handle in enumerate(own)}

    def named(text: str | None) -> str | None:
        if text is None or ":" not in text:
            return text
        major, minor = text.split(":")
        return f"{names.get(major, major)}:{minor}"

    return {
        "qdiscs": {
            named(one["handle"]): (one["kind"], named(one["parent"]), one["words"])
            for one in qdiscs
        },
        "classes": {
            named(one["id"]): (
                one["kind"],
                named(one["parent"]),
                {**one["words"], "leaf": named(one["leaf"])},
            )
            for one in device["classes"]
        },
    }


def _compare(what: str, here: State, there: State) -> Iterator[str]:
    if here.keys() != there.keys():
        yield f"{what}: ours {sorted(here)}, the kernel's {sorted(there)}"
        return
    for name, (kind, parent, words) in here.items():
        other = there[name]
        if (kind, parent) != other[:2]:
            yield f"{what} {name}: ours {kind} {parent}, the kernel's {other[0]} {other[1]}"
            continue
        for word in words.keys() | other[2].keys():
            mine, theirs = words.get(word), other[2].get(word)
            if word == "queues":  # of gred: the output has neither avpkt nor bandwidth
                mine, theirs = ([queue[:9] for queue in one or []] for one in (mine, theirs))
            if word == "tupdate":
                mine = -(-mine // JIFFY_NS) * JIFFY_NS
            hidden = word in HIDDEN.get(kind, ()) or (what, word) in UNSHOWN
            if not hidden and not _equal(mine, theirs):
                yield f"{what} {name} {kind} {word}: ours {mine}, the kernel's {theirs}"


def _equal(mine: Any, theirs: Any) -> bool:
    """Return True for values that are equal up to the clocks and the digits of the kernel."""
    if isinstance(mine, list) and isinstance(theirs, list):
        pairs = zip(mine, theirs, strict=False)
        rest = [*mine[len(theirs) :], *theirs[len(mine) :]]
        return all(_equal(a, b) for a, b in pairs) and all(one in (0, "0") for one in rest)
    if isinstance(mine, int | float) and isinstance(theirs, int | float):
        return abs(mine - theirs) <= max(1e-2 * abs(mine), 2e-5)
    if (mine or 0) in (0, [0], [0, 0]) and (theirs or 0) in (0, [0], [0, 0]):
        return True
    return bool(mine == theirs)


def run(count: int, seed: int, folder: Path) -> list[tuple[list[str], list[str]]]:
    """Return each sequence that differs, with its differences."""
    draw = random.Random(seed)
    sequences = [sequence(draw) for _ in range(count)]
    answers = ask(sequences, folder)
    pairs = zip(sequences, answers, strict=True)
    compared = [(commands, differences(commands, answer)) for commands, answer in pairs]
    return [(commands, rows) for commands, rows in compared if rows]


def main() -> int:
    """Compare random sequences; print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--show", type=int, default=10, help="sequences to print")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bad = run(options.count, options.seed, Path(folder))
    for commands, rows in bad[: options.show]:
        print("\n".join(["", *commands, *(f"  {row}" for row in rows)]))
    print(f"{options.count - len(bad)} of {options.count} sequences agree (seed {options.seed})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
