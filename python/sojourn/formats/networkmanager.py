"""Connections of NetworkManager (.nmconnection) as commands of tc, and back.

Source: nm-settings-keyfile(5), NetworkManager 355bc902. NetworkManager passes the words of fq_codel
and sfq to the kernel; the words of other kinds, cake among them, are dropped. Rates of tbf are
numbers without a unit whose meaning differs from tc's, so they are refused.
"""

import re
from collections.abc import Sequence

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.formats.commands import Command, Commands, Exported, commands, comments
from sojourn.formats.ini import sections

WORDS = {
    "fq_codel": (
        *("limit", "flows", "target", "interval", "quantum", "ce_threshold", "memory_limit"),
        "ecn",
    ),
    "sfq": ("quantum", "perturb", "limit", "divisor", "flows", "depth"),
}
"""Words that have an effect."""

PLACE = re.compile(r"qdisc\.(root|ingress|clsact|[0-9a-fA-F]*:[0-9a-fA-F]*)")


def is_config(text: str) -> bool:
    """Return True if `text` is a connection of NetworkManager with a qdisc."""
    keyfile = re.search(r"^\s*\[tc\]\s*$", text, re.MULTILINE)
    return bool(keyfile) and re.search(r"^\s*qdisc\.", text, re.MULTILINE) is not None


def read(text: str) -> Commands:
    """Return commands of tc for the qdiscs of a connection.

    Raises
    ------
    InputError
        If a line is invalid, no device is named, or a qdisc has a rate.
    """
    parts = sections(text)
    device = next(
        (
            name
            for part in parts
            if part.name == "connection"
            if (name := part.get("interface-name"))
        ),
        None,
    )
    if device is None:
        raise InputError("[connection] interface-name: is missing, so the device is unknown")
    lines: list[str] = []
    lost: list[tuple[str, str]] = []
    for key, value in (one for part in parts if part.name == "tc" for one in part.keys):
        place = PLACE.fullmatch(key)
        if place is None:
            lost.append((device, f"[tc] {key}={value}"))
            continue
        lines.append(_command(device, place[1], key, value.split(), lost))
    if not lines:
        raise InputError("[tc]: there is no qdisc")
    return Commands("\n".join(lines), lost)


def _command(
    device: str, parent: str, key: str, words: list[str], lost: list[tuple[str, str]]
) -> str:
    """Return the command of a qdisc, and append the words that are dropped to `lost`."""
    handle = ""
    if words[:1] == ["handle"]:
        handle, words = f" handle {words[1].rstrip(':')}:" if len(words) > 1 else "", words[2:]
    if not words:
        raise InputError(f"[tc] {key}: the kind of the qdisc is missing")
    kind, words = words[0], words[1:]
    if kind == "tbf":
        text = "its rate has another unit than in tc; give the tc command"
        raise InputError(f"[tc] {key}: tbf is not read: {text}")
    if words and kind not in WORDS:
        lost.append((device, f"[tc] {key}: NetworkManager drops the words of {kind}"))
        words = []
    for word in words[::1]:
        if not word.isdecimal() and word not in WORDS[kind]:
            raise InputError(f"[tc] {key}: unknown word {brief(word)} of {kind}")
    place = "root" if parent == "root" else f"parent {parent}"
    return " ".join([f"tc qdisc add dev {device} {place}{handle} {kind}", *words])


def write(links: Sequence[Exported]) -> list[str]:
    """Return a connection for each link. Comments name what NetworkManager cannot say."""
    lines: list[str] = []
    for one in links:
        notes = comments(one.lines)
        leaf = commands(one.lines)[-1]
        if "rate" in one.link:
            notes.append(f"# rate: NetworkManager has no class for {one.link['rate']}")
        entry = _entry(leaf, notes)
        lines += ["", f"# {one.dev}.nmconnection"] if lines else [f"# {one.dev}.nmconnection"]
        lines += [*notes, "[connection]", f"id={one.dev}", "type=ethernet"]
        lines += [f"interface-name={one.dev}", "", "[tc]", f"qdisc.root={entry}"]
    return lines


def _entry(leaf: Command, notes: list[str]) -> str:
    """Return the text of a qdisc, and append comments about words without effect to `notes`."""
    known = WORDS.get(leaf.kind)
    if known is None:
        if leaf.words:
            notes.append(f"# {leaf.kind}: NetworkManager drops its words {' '.join(leaf.words)}")
        return leaf.kind
    words, rest = [leaf.kind], list(leaf.words)
    while rest:
        word = rest.pop(0)
        if word == "ecn":
            words.append(word)
            continue
        value = rest.pop(0) if rest and rest[0][0].isdigit() else ""
        number = _number(value)
        if word not in known or number is None:
            notes.append(f"# {leaf.kind} {word}: NetworkManager has no {word} {value}".rstrip())
        else:
            words += [word, number]
    return " ".join(words)


def _number(value: str) -> str | None:
    """Return a value of tc as a whole number: times in microseconds, sizes in bytes."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|b|kb|mb)?", value.lower())
    if match is None:
        return None
    scale = {"ms": 10**3, "s": 10**6, "kb": 1024, "mb": 1024**2}.get(match[2] or "", 1)
    number = float(match[1]) * scale
    return str(int(number)) if number == int(number) else None
