"""Files of systemd-networkd (.network) as commands of tc, and back.

Source: systemd.network(5). Rates have units of 1000 bits, sizes of 1024 bytes, times of seconds.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near
from sojourn.formats.commands import Command, Commands, Exported, commands, comments
from sojourn.formats.ini import Section, sections

Key = tuple[str, Callable[[str], str]]
"""Word of tc, and the function that converts a value to tc's."""


def _rate(value: str) -> str:
    """Return a rate of networkd for tc: "20M" is 20 Mbit/s."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([KMGT]?)(?:bps)?", value)
    if match is None:
        raise InputError(f"{brief(value)} is not a rate like 20M")
    return f"{match[1]}{match[2].lower()}bit"


def _size(value: str) -> str:
    """Return a size of networkd for tc: "4K" is 4096 bytes."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)B?", value)
    if match is None:
        raise InputError(f"{brief(value)} is not a size like 4K")
    return str(int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]])


TIME_US = {"us": 1, "usec": 1, "µs": 1, "ms": 10**3, "msec": 10**3, "s": 10**6, "sec": 10**6}
"""Units of time in microseconds; a bare number is in seconds."""


def _time(value: str) -> str:
    """Return a time of networkd for tc: "1s 500ms" is 1.5 s."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]*)\s*", value)
    if not parts or "".join(f"{n}{unit}" for n, unit in parts) != re.sub(r"\s", "", value):
        raise InputError(f"{brief(value)} is not a time like 5ms")
    if unknown := next((unit for _, unit in parts if unit and unit not in TIME_US), None):
        raise InputError(f"{brief(value)}: unknown unit {brief(unknown)}")
    return f"{round(sum(float(n) * TIME_US[unit or 's'] for n, unit in parts))}us"


def _count(value: str) -> str:
    """Return a count."""
    if not re.fullmatch(r"[0-9]+", value):
        raise InputError(f"{brief(value)} is not a number")
    return value


def _number(value: str) -> str:
    """Return a number that may be negative, hexadecimal or with a mask."""
    if not re.fullmatch(r"-?[0-9]+|0x[0-9a-fA-F]+(/0x[0-9a-fA-F]+)?", value):
        raise InputError(f"{brief(value)} is not a number")
    return value


def _share(value: str) -> str:
    """Return a percentage."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?%", value):
        raise InputError(f"{brief(value)} is not a percentage like 1%")
    return value


YES = {"1": True, "yes": True, "true": True, "on": True, "y": True, "t": True}
NO = {"0": False, "no": False, "false": False, "off": False, "n": False, "f": False}


def _yes(value: str) -> bool:
    """Return a boolean of systemd."""
    answer = {**YES, **NO}.get(value.lower())
    if answer is None:
        raise InputError(f"{brief(value)} is neither yes nor no")
    return answer


def _flag(yes: str, no: str) -> Callable[[str], str]:
    """Return a function that gives the word of tc for a boolean."""
    return lambda value: yes if _yes(value) else no


def _choice(**words: str) -> Callable[[str], str]:
    """Return a function that gives the word of tc for one of several values."""

    def convert(value: str) -> str:
        known = {key.replace("_", "-"): word for key, word in words.items()}
        if value not in known:
            raise InputError(f"unknown value {brief(value)}{near(value, list(known))}")
        return known[value]

    return convert


ISOLATION = {
    "none": "flowblind",
    "src_host": "srchost",
    "dst_host": "dsthost",
    "hosts": "hosts",
    "flows": "flows",
    "dual_src_host": "dual-srchost",
    "dual_dst_host": "dual-dsthost",
    "triple": "triple-isolate",
}

PRESETS = ("besteffort", "precedence", "diffserv8", "diffserv4", "diffserv3")

CODEL: dict[str, Key] = {
    "PacketLimit": ("limit", _count),
    "TargetSec": ("target", _time),
    "IntervalSec": ("interval", _time),
    "ECN": ("", _flag("ecn", "noecn")),
    "CEThresholdSec": ("ce_threshold", _time),
}

LIMIT: dict[str, Key] = {"PacketLimit": ("limit", _count)}

KINDS: dict[str, tuple[str, dict[str, Key]]] = {
    "CAKE": (
        "cake",
        {
            "Bandwidth": ("bandwidth", _rate),
            "AutoRateIngress": ("", _flag("autorate-ingress", "")),
            "OverheadBytes": ("overhead", _number),
            "MPUBytes": ("mpu", _count),
            "CompensationMode": ("", _choice(none="noatm", atm="atm", ptm="ptm")),
            "UseRawPacketSize": ("", _flag("raw", "")),
            "FlowIsolationMode": ("", _choice(**ISOLATION)),
            "NAT": ("", _flag("nat", "nonat")),
            "PriorityQueueingPreset": ("", _choice(**{one: one for one in PRESETS})),
            "FirewallMark": ("fwmark", _number),
            "Wash": ("", _flag("wash", "nowash")),
            "SplitGSO": ("", _flag("split-gso", "no-split-gso")),
            "RTTSec": ("rtt", _time),
            "AckFilter": (
                "",
                lambda value: (
                    "ack-filter-aggressive"
                    if value == "aggressive"
                    else _flag("ack-filter", "no-ack-filter")(value)
                ),
            ),
        },
    ),
    "ControlledDelay": ("codel", CODEL),
    "FairQueueingControlledDelay": (
        "fq_codel",
        {
            **CODEL,
            "MemoryLimitBytes": ("memory_limit", _size),
            "Flows": ("flows", _count),
            "QuantumBytes": ("quantum", _size),
        },
    ),
    "FairQueueing": (
        "fq",
        {
            "PacketLimit": ("limit", _count),
            "FlowLimit": ("flow_limit", _count),
            "QuantumBytes": ("quantum", _size),
            "InitialQuantumBytes": ("initial_quantum", _size),
            "MaximumRate": ("maxrate", _rate),
            "Buckets": ("buckets", _count),
            "OrphanMask": ("orphan_mask", _count),
            "Pacing": ("", _flag("pacing", "nopacing")),
            "CEThresholdSec": ("ce_threshold", _time),
        },
    ),
    "TokenBucketFilter": (
        "tbf",
        {
            "Rate": ("rate", _rate),
            "BurstBytes": ("burst", _size),
            "LimitBytes": ("limit", _size),
            "LatencySec": ("latency", _time),
            "MPUBytes": ("mpu", _size),
            "PeakRate": ("peakrate", _rate),
            "MTUBytes": ("mtu", _size),
        },
    ),
    "NetworkEmulator": (
        "netem",
        {
            "PacketLimit": ("limit", _count),
            "DelaySec": ("delay", _time),
            "DelayJitterSec": ("", _time),
            "LossRate": ("loss", _share),
            "DuplicateRate": ("duplicate", _share),
        },
    ),
    "PIE": ("pie", LIMIT),
    "FlowQueuePIE": ("fq_pie", LIMIT),
    "StochasticFairBlue": ("sfb", LIMIT),
    "StochasticFairnessQueueing": ("sfq", {"PerturbPeriodSec": ("perturb", _count)}),
    "PFIFO": ("pfifo", LIMIT),
    "BFIFO": ("bfifo", {"LimitBytes": ("limit", _size)}),
    "PFIFOFast": ("pfifo_fast", {}),
    "HierarchyTokenBucket": (
        "htb",
        {
            "DefaultClass": ("default", lambda value: value.removeprefix("0x")),
            "RateToQuantum": ("r2q", _count),
        },
    ),
    "HierarchyTokenBucketClass": (
        "htb",
        {
            "Priority": ("prio", _count),
            "QuantumBytes": ("quantum", _size),
            "MTUBytes": ("mtu", _size),
            "OverheadBytes": ("overhead", _size),
            "Rate": ("rate", _rate),
            "CeilRate": ("ceil", _rate),
            "BufferBytes": ("burst", _size),
            "CeilBufferBytes": ("cburst", _size),
        },
    ),
}
"""Sections: the kind of the qdisc, and for each key the word of tc."""

OTHER_KINDS = (
    *("DeficitRoundRobinScheduler", "DeficitRoundRobinSchedulerClass"),
    *("EnhancedTransmissionSelection", "GenericRandomEarlyDetection", "HeavyHitterFilter"),
    *("QuickFairQueueing", "QuickFairQueueingClass", "TrivialLinkEqualizer", "BandMultiQueueing"),
    *("ClassfulMultiQueueing", "QDisc"),
)
"""Other sections about queues."""

CLASS = "HierarchyTokenBucketClass"


def is_config(text: str) -> bool:
    """Return True if `text` is a file of networkd with a queue."""
    names = "|".join((*KINDS, *OTHER_KINDS))
    return re.search(rf"^\s*\[({names})\]\s*$", text, re.MULTILINE) is not None


def read(text: str) -> Commands:
    """Return commands of tc for the queues of a .network file.

    Raises
    ------
    InputError
        If a line or a value is invalid, no device is named, or no queue is known.
    """
    parts = sections(text)
    named = [part.get("Name") for part in parts if part.name == "Match"]
    device = next((name for name in named if name), None)
    if device is None:
        raise InputError("[Match] Name: is missing, so the device is unknown")
    if re.search(r"[\s*?\[!]", device):
        raise InputError(f"[Match] Name: {brief(device)} is not one device")
    lines: list[str] = []
    lost: list[tuple[str, str]] = []
    for part in parts:
        if part.name in KINDS:
            lines.append(_command(part, device, lost))
        elif part.name in OTHER_KINDS:
            lost.append((device, f"[{part.name}]: this qdisc is not read"))
    if not lines:
        raise InputError(f"there is no queue of {device} that is read")
    return Commands("\n".join(lines), lost)


def _command(part: Section, device: str, lost: list[tuple[str, str]]) -> str:
    """Return the command of a section, and append its keys without effect to `lost`."""
    kind, keys = KINDS[part.name]
    parent, handle = part.get("Parent") or "root", part.get("Handle")
    words: list[str] = []
    for key, value in part.keys:
        if key in ("Parent", "Handle", "ClassId") or not value:
            continue
        if key not in keys:
            if key in {one for _, others in KINDS.values() for one in others}:
                raise InputError(f"[{part.name}] {key}: is not a key of this section")
            lost.append((device, f"[{part.name}] {key}={value}"))
            continue
        word, convert = keys[key]
        try:
            text = convert(value)
        except InputError as error:
            raise InputError(f"[{part.name}] {key}: {error}") from None
        words += [one for one in (word, text) if one]
    if kind == "netem":
        words = _netem(words, part)
    place = "root" if parent == "root" else f"parent {parent}"
    if parent in ("ingress", "clsact"):
        raise InputError(f"[{part.name}] Parent: {parent} has no queue")
    if part.name == CLASS:
        classid = part.get("ClassId")
        if classid is None:
            raise InputError(f"[{part.name}] ClassId: is missing")
        place = f"parent {classid.partition(':')[0]}:" if parent == "root" else place
        return " ".join([f"tc class add dev {device} {place} classid {classid} {kind}", *words])
    handle = f" handle {handle.rstrip(':')}:" if handle else ""
    return " ".join([f"tc qdisc add dev {device} {place}{handle} {kind}", *words])


def _netem(words: list[str], part: Section) -> list[str]:
    """Return the words of netem with the jitter behind the delay."""
    jitter = part.get("DelayJitterSec")
    if jitter is None:
        return words
    text = _time(jitter)
    words = [word for i, word in enumerate(words) if word != text or words[i - 1] == "delay"]
    if "delay" not in words:
        raise InputError("[NetworkEmulator] DelayJitterSec: needs DelaySec")
    at = words.index("delay") + 2
    return [*words[:at], text, *words[at:]]


def write(links: Sequence[Exported]) -> list[str]:
    """Return a .network file for each link. Comments name what networkd cannot say."""
    result: list[str] = []
    for one in links:
        result += ["", f"# {one.dev}.network"] if result else [f"# {one.dev}.network"]
        body: list[str] = []
        notes = comments(one.lines)
        for command in commands(one.lines):
            body += ["", *_section(command, notes)]
        result += [*notes, "[Match]", f"Name={one.dev}", *body]
    return result


def _section(command: Command, notes: list[str]) -> list[str]:
    """Return the section of a command, and append comments about words without a key to `notes`."""
    what = CLASS if command.what == "class" else None
    names = [name for name, (kind, _) in KINDS.items() if kind == command.kind]
    name = what or next((one for one in names if one != CLASS), None)
    if name is None:
        raise InputError(f"networkd has no section for {command.kind}")
    lines = [f"[{name}]"]
    parent = command.parent
    if what and parent.endswith(":"):
        parent = "root"
    lines.append(f"Parent={parent}")
    if command.handle:
        number = command.handle if what else command.handle.rstrip(":")
        lines.append(f"{'ClassId' if what else 'Handle'}={number}")
    return lines + _keys(KINDS[name][1], command, notes)


def _keys(known: Mapping[str, Key], command: Command, notes: list[str]) -> list[str]:
    """Return the keys for the words of a command."""
    lines = []
    by_word = {word: (key, convert) for key, (word, convert) in known.items() if word}
    flags = _flags(known)
    words = list(command.words)
    while words:
        word = words.pop(0)
        if word in by_word:
            key, convert = by_word[word]
            value = words.pop(0)
            text = _stated(value, convert)
            if text is None:
                notes.append(f"# {command.kind} {word}: networkd cannot say {value}")
            else:
                lines.append(f"{key}={text}")
        elif word in flags:
            lines.append(flags[word])
        elif command.kind == "netem" and lines and lines[-1].startswith("DelaySec="):
            lines.append(f"DelayJitterSec={_stated(word, _time)}")
        else:
            value = words.pop(0) if words and not words[0].isalpha() else ""
            notes.append(
                f"# {command.kind} {word}: networkd has no key for {word} {value}".rstrip()
            )
    return lines


def _flags(known: Mapping[str, Key]) -> dict[str, str]:
    """Return the line of each word without a value."""
    flags = {}
    values = {
        "FlowIsolationMode": [key.replace("_", "-") for key in ISOLATION],
        "PriorityQueueingPreset": list(PRESETS),
        "CompensationMode": ["none", "atm", "ptm"],
        "AckFilter": ["yes", "no", "aggressive"],
    }
    for key, (word, convert) in known.items():
        if word or key == "DelayJitterSec":
            continue
        for value in values.get(key, ["yes", "no"]):
            if text := convert(value):
                flags[text] = f"{key}={value}"
    return flags


def _stated(value: str, convert: Callable[[str], str]) -> str | None:
    """Return a value of tc as networkd writes it; None if it cannot."""
    if convert is _rate:
        match = re.fullmatch(r"([0-9.]+)([kmgt]?)bit", value.lower())
        return f"{match[1]}{match[2].upper()}" if match else None
    if convert is _size:
        match = re.fullmatch(r"([0-9]+)(b|kb|mb|k|m)?", value.lower())
        scale = {"k": 1024, "m": 1024**2}.get((match[2] or "b")[0], 1) if match else 1
        return str(int(match[1]) * scale) if match else None
    if convert is _time:
        match = re.fullmatch(r"([0-9.]+)(us|ms|s)?", value)
        return f"{match[1]}{match[2] or 'us'}" if match else None
    try:
        return convert(value)
    except InputError:
        return None
