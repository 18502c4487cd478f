"""Pipes, schedulers and queues of FreeBSD's dummynet as commands of tc; OPNsense's config.xml too.

Source: ipfw(8) (traffic shaper, AQM), sys/netpfil/ipfw of FreeBSD, and OPNsense's template
ipfw.conf, which writes pipes as this module reads them from config.xml.

A pipe is a link with a rate and a delay. Its scheduler, or its only queue, gives the discipline.
FQ-CoDel of FreeBSD is imported as FQ-CoDel of Linux. They differ for a queue with a deficit of 0,
which FreeBSD serves once more.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.formats.commands import Commands

SLOTS = 50
"""Packets that a queue holds unless it is given."""

IN_FLIGHT = 1_000_000
"""Packets in flight that a delay may hold; dummynet has no limit."""

RATES = {"bit/s": 1, "kbit/s": 10**3, "mbit/s": 10**6, "gbit/s": 10**9}
RATES |= {name.replace("bit", "byte"): 8 * bits for name, bits in RATES.items()}
"""Units of bw in bit/s, in small letters; the `it` or `yte` and `/s` may be left out."""

FIFOS = ("fifo", "wf2q+", "rr", "qfq")
"""Schedulers that serve a single queue in order of arrival."""

AQMS = {
    "fq_codel": ("target", "interval", "quantum", "limit", "flows", "ecn", "noecn"),
    "fq_pie": ("target", "tupdate", "quantum", "limit", "flows", "ecn", "noecn"),
    "codel": ("target", "interval", "ecn", "noecn"),
    "pie": ("target", "tupdate", "ecn", "noecn"),
}
"""Words that are read of each algorithm."""

FLAGS = {"ecn", "noecn", "noerror", "capdrop", "nocapdrop", "drand", "nodrand", "derand",
         "noderand", "onoff", "noonoff", "dre", "ts"}  # fmt: skip
"""Words without a value."""

MASKS = (
    "all",
    "dst-ip",
    "src-ip",
    "dst-ip6",
    "src-ip6",
    "dst-port",
    "src-port",
    "flow-id",
    "proto",
)
"""Fields of a mask, which are followed by a number, except for `all`."""

LINE = (
    r"^\s*(?:(?:/sbin/)?(?:ipfw|dnctl)(?: -\w+)*\s+)?(pipe|sched|queue)\s+([0-9]+)\s+config\b(.*)$"
)


@dataclass
class Item:
    """Pipe, scheduler or queue.

    Attributes
    ----------
    name : str
        What it is, with its number.
    words : dict
        Words with their values; of a flag, the empty text.
    aqm : str
        Algorithm; empty if none is given.
    """

    name: str
    words: dict[str, str] = field(default_factory=dict)
    aqm: str = ""


SHOWN = r"^\s*([0-9]+:\s+[0-9.]+ [KMG]?bit/s .*|sched [0-9]+ type .*|q[0-9]+ .*sl\..*)$"
"""Lines of `ipfw pipe show`, which leaves out words at their defaults."""


def is_config(text: str) -> bool:
    """Return True if `text` configures or shows dummynet, or is OPNsense's config.xml."""
    return _is_xml(text) or any(re.search(one, text, re.MULTILINE) for one in (LINE, SHOWN))


def _is_xml(text: str) -> bool:
    return text.lstrip().startswith("<") and "<TrafficShaper" in text


def read(text: str) -> Commands:
    """Return commands of tc for the pipes; pipe N is the device `pipeN`.

    Raises
    ------
    InputError
        If a word is unknown or has no value, several queues share a pipe, or the XML is invalid.
    """
    items = {key: _item(key, words) for key, words in _configured(text)}
    if not items and (shown := re.search(SHOWN, text, re.MULTILINE)):
        raise InputError(
            f"{brief(shown[1].strip())}: output of ipfw is not read; import the commands, "
            "like ipfw pipe 1 config bw 10Mbit/s"
        )
    commands: list[str] = []
    lost: list[tuple[str, str]] = []
    for (what, number), pipe in items.items():
        if what == "pipe":
            lines, notes = _pipe(number, pipe, items)
            commands += lines
            lost += [(f"pipe{number}", note) for note in notes]
    if not commands:
        raise InputError("there is no pipe, like pipe 1 config bw 10Mbit/s")
    return Commands("\n".join(commands), lost)


Key = tuple[str, int]


def _configured(text: str) -> Iterator[tuple[Key, list[str]]]:
    """Yield what is configured with its words."""
    if _is_xml(text):
        yield from _of_xml(text)
        return
    for line in text.splitlines():
        if match := re.match(LINE, line):
            yield (match[1], int(match[2])), shlex.split(match[3], comments=True)


def _of_xml(text: str) -> Iterator[tuple[Key, list[str]]]:
    """Yield the enabled pipes and queues of OPNsense's config.xml, as its template writes them."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"config.xml: {error}") from None
    numbers: dict[str, str] = {}
    for pipe in root.iterfind(".//TrafficShaper/pipes/pipe"):
        value = {child.tag: (child.text or "").strip() for child in pipe}
        numbers[pipe.get("uuid", "")] = value.get("number", "")
        if value.get("enabled") != "1":
            continue
        metric = value.get("queueMetric", "")
        words = ["bw", f"{value.get('bandwidth', '')}{value.get('bandwidthMetric', '')}/s"]
        if value.get("queue"):
            words += ["queue", value["queue"] + metric.replace("slots", "")]
        if value.get("mask", "none") != "none":
            words += ["mask", value["mask"], "0xffffffff"]
        if value.get("delay"):
            words += ["delay", value["delay"]]
        words += ["type", value.get("scheduler") or "wf2q+", *_aqm_of_xml(value)]
        yield ("pipe", _number(pipe.tag, value)), words
    for queue in root.iterfind(".//TrafficShaper/queues/queue"):
        value = {child.tag: (child.text or "").strip() for child in queue}
        if value.get("enabled") == "1":
            pipe_number = numbers.get(value.get("pipe", ""), "")
            words = ["pipe", pipe_number, "weight", value.get("weight", "1"), *_aqm_of_xml(value)]
            yield ("queue", _number(queue.tag, value)), words


def _number(tag: str, value: dict[str, str]) -> int:
    text = value.get("number", "")
    if not text.isdecimal():
        raise InputError(f"config.xml: {tag}: number: {brief(text)} is not a number")
    return int(text)


def _aqm_of_xml(value: dict[str, str]) -> list[str]:
    """Return the words of the algorithm of a pipe or a queue."""
    fair = value.get("scheduler") == "fq_codel"
    if not fair and value.get("codel_enable") != "1":
        pie = value.get("pie_enable") == "1" and value.get("scheduler") != "fq_pie"
        return ["pie"] if pie else []
    keys = {"target": "codel_target", "interval": "codel_interval"}
    if fair:
        keys |= {name: f"fqcodel_{name}" for name in ("quantum", "limit", "flows")}
    words = [] if fair else ["codel"]
    for name, key in keys.items():
        if value.get(key):
            words += [name, value[key]]
    return [*words, "ecn" if value.get("codel_ecn_enable") == "1" else "noecn"]


def _item(key: Key, words: list[str]) -> Item:
    """Return what is configured."""
    item = Item(f"{key[0]} {key[1]}")
    left = list(words)
    while left:
        original = left.pop(0)
        word = original.lower()
        if word in AQMS:
            item.aqm = word
        elif word in FLAGS:
            item.words[word] = ""
        elif word == "mask":
            fields = []
            while left and left[0] in MASKS:
                fields += [left.pop(0) for _ in range(1 if left[0] == "all" else 2) if left]
            item.words[word] = " ".join(fields)
        elif not left:
            raise InputError(f"{item.name}: {brief(original)} has no value")
        else:
            item.words[word] = left.pop(0)
    kind = item.words.get("type", "").lower()
    if kind in AQMS:
        item.aqm = kind
    elif kind and kind not in FIFOS:
        raise InputError(f"{item.name}: type {brief(kind)} is not read")
    return item


def _pipe(number: int, pipe: Item, items: dict[Key, Item]) -> tuple[list[str], list[str]]:
    """Return the commands of a pipe, and what has no effect in them."""
    served = [pipe, *_below(number, items)]
    queues = [one for one in served[1:] if one.name.startswith("queue")]
    if len(queues) > 1:
        names = ", ".join(one.name for one in queues)
        raise InputError(f"{names}: several queues share pipe {number}; leave one")
    dev = f"pipe{number}"
    lost = [f"{one.name} {text}" for one in served for text in _without_effect(one)]
    lines, place = [], "root"
    delay, loss = _time(pipe, "delay"), _loss(pipe)
    if delay or loss:
        words = [f" delay {delay}"] if delay else []
        words += [f" loss {loss}%"] if loss else []
        lines.append(
            f"tc qdisc add dev {dev} root handle 1: netem{''.join(words)} limit {IN_FLIGHT}"
        )
        place = "parent 1:1"
    rate = _rate(pipe)
    if rate:
        burst = f" burst {size} cburst {size}" if (size := _burst(pipe)) else ""
        lines += [
            f"tc qdisc add dev {dev} {place} handle 2: htb default 1",
            f"tc class add dev {dev} parent 2: classid 2:1 htb rate {rate}bit{burst}",
        ]
        place = "parent 2:1"
    lines.append(f"tc qdisc add dev {dev} {place} {_discipline(served)}")
    return lines, lost


def _below(number: int, items: dict[Key, Item]) -> Iterator[Item]:
    """Yield the schedulers of a pipe, and their queues.

    A scheduler serves the pipe of its number unless it names another.
    """
    scheds = {
        n for (what, n), item in items.items()
        if what == "sched" and int(item.words.get("pipe", n)) == number
    }  # fmt: skip
    for (what, n), item in items.items():
        if what == "sched" and n in scheds:
            yield item
        sched = item.words.get("sched")
        of_sched = sched is not None and int(sched) in scheds | {number}
        if what == "queue" and (of_sched or item.words.get("pipe") == str(number)):
            yield item


def _without_effect(item: Item) -> Iterator[str]:
    read_words = {"bw", "bandwidth", "delay", "plr", "queue", "type", "pipe", "sched", "burst"}
    read_words.add("weight")  # of the only queue
    for word, value in item.words.items():
        if word not in read_words and word not in AQMS.get(item.aqm, ()):
            yield f"{word} {value}".strip()


def _rate(pipe: Item) -> int:
    """Return the rate of a pipe in bit/s; 0 if it has none."""
    text = pipe.words.get("bw", pipe.words.get("bandwidth", "0"))
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmg]?)(b[a-z]*)?(/s)?", text.lower())
    if match is None or (match[3] or "bit") not in ("b", "bit", "bits", "byte", "bytes"):
        raise InputError(f"{pipe.name}: bw {brief(text)} is not a rate, like 10Mbit/s")
    unit = "byte/s" if (match[3] or "").startswith("by") else "bit/s"
    return round(float(match[1]) * RATES[match[2] + unit])


def _time(item: Item, word: str) -> str:
    """Return a time for tc; without a unit it is in milliseconds. Nothing if it is 0."""
    text = item.words.get(word, "0")
    match = re.fullmatch(r"([0-9]+)(us|ms|s)?", text.lower())
    if match is None:
        raise InputError(f"{item.name}: {word} {brief(text)} is not a time, like 5ms")
    return f"{match[1]}{match[2] or 'ms'}" if int(match[1]) else ""


def _loss(pipe: Item) -> float:
    """Return the share of packets that a pipe drops at random, in per cent."""
    text = pipe.words.get("plr", "0")
    if not re.fullmatch(r"0(\.[0-9]+)?|1(\.0*)?", text):
        raise InputError(f"{pipe.name}: plr {brief(text)} is not a share from 0 to 1")
    return float(text) * 100


def _size(item: Item, word: str) -> tuple[int, bool]:
    """Return a size, and True if it is in bytes."""
    text = item.words.get(word, str(SLOTS))
    match = re.fullmatch(r"([0-9]+)([km]?)(b|byte|bytes)?", text.lower())
    if match is None:
        raise InputError(f"{item.name}: {word} {brief(text)} is not a size, like 50 or 100KB")
    unit = {"": 1, "k": 1024, "m": 1024**2}[match[2]]
    return int(match[1]) * unit, bool(match[2] or match[3])


def _burst(pipe: Item) -> int:
    """Return the burst of a pipe in bytes; 0 if it has none."""
    return _size(pipe, "burst")[0] if "burst" in pipe.words else 0


def _discipline(served: list[Item]) -> str:
    """Return the qdisc of a pipe: of its scheduler, or of its queue."""
    item = next((one for one in reversed(served) if one.aqm.startswith("fq_")), None)
    item = item or next((one for one in reversed(served) if one.aqm), None)
    sized = next((one for one in reversed(served) if "queue" in one.words), served[0])
    limit, in_bytes = _size(sized, "queue")
    if item is None:
        return f"{'bfifo' if in_bytes else 'pfifo'} limit {limit}"
    if in_bytes and item.aqm in ("codel", "pie"):
        raise InputError(
            f"{sized.name}: queue {sized.words['queue']}: {item.aqm} of tc has a limit in packets"
        )
    words = [item.aqm]
    if item.aqm in ("codel", "pie"):
        words += ["limit", str(limit)]
    for word in AQMS[item.aqm]:
        if word in ("target", "interval", "tupdate") and word in item.words:
            words += [word, _time(item, word) or "0ms"]
        elif word not in FLAGS and word in item.words:
            words += [word, item.words[word]]
    return " ".join([*words, "ecn" if "ecn" in item.words else "noecn"])
