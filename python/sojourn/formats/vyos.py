"""Policies of VyOS (`qos policy` and the older `traffic-policy`) as commands of tc.

Source: vyos-1x, python/vyos/qos (base, cake, fqcodel, ratelimiter, trafficshaper) and the default
values of its interface definitions, October 2024.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.formats.commands import Commands

Node = dict[str, Any]
"""Names with what is below them; a value is a name with nothing below it."""

MULTIPLES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12, "": 10**3}
"""Units of rates in bit/s; a bare number is in kbit/s."""

IGNORED = {"description"}

WORDS = {
    "fq-codel": ("codel-quantum", "flows", "interval", "queue-limit", "target"),
    "fair-queue": ("queue-limit",),
    "drop-tail": ("queue-limit",),
}
"""Keys of each type of queue that have an effect."""

TC = {"codel-quantum": "quantum", "queue-limit": "limit"}
"""Words of tc for keys of another name."""

TOS = {"default": 0, "EF": 184, **{f"CS{n}": 32 * n for n in range(1, 8)}}
TOS |= {f"AF{n}{m}": 32 * n + 8 * m for n in range(1, 5) for m in range(1, 4)}
"""Bytes of DSCP names."""


def is_config(text: str) -> bool:
    """Return True if `text` has a policy of VyOS, as `set` commands or with braces."""
    pattern = r"^\s*(set (qos|traffic-policy) |(qos|traffic-policy) \{)"
    return re.search(pattern, text, re.MULTILINE) is not None


def read(text: str) -> Commands:
    """Return commands of tc for the policies of a configuration.

    A policy without an interface has a device of its own name.

    Raises
    ------
    InputError
        If braces do not match, a rate is missing or a share of an unknown speed, or the kind of a
        policy is not read.
    """
    tree = _tree(text)
    policies = _at(tree, "qos", "policy") | _at(tree, "traffic-policy")
    devices = _devices(tree)
    lines: list[str] = []
    lost: list[tuple[str, str]] = []
    for kind, named in policies.items():
        for name, policy in named.items():
            dev = devices.get(name, name)
            path = f"{kind} {name}"
            if kind not in KINDS:
                raise InputError(
                    f"{brief(path)}: this kind of policy is not read; known: {', '.join(KINDS)}"
                )
            lost += [(dev, text) for text in KINDS[kind](path, policy, dev, lines)]
    if not lines:
        raise InputError("no policy in qos policy or traffic-policy")
    return Commands("\n".join(lines), lost)


def _tree(text: str) -> Node:
    """Return the names of a configuration as a tree."""
    tree: Node = {}
    open_: list[Node] = [tree]
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(re.sub(r"/\*.*?\*/", "", line), comments=True)
        except ValueError as error:
            raise InputError(f"line {number}: {str(error).lower()}") from None
        if words[:1] == ["set"]:
            _put(tree, words[1:])
        elif words == ["}"]:
            if len(open_) == 1:
                raise InputError(f"line {number}: a brace that is not open")
            open_.pop()
        elif words[-1:] == ["{"]:
            open_.append(_put(open_[-1], words[:-1]))
        elif words:
            _put(open_[-1], words)
    if len(open_) > 1:
        raise InputError("a brace is not closed")
    return tree


def _put(node: Node, words: list[str]) -> Node:
    for word in words:
        node = node.setdefault(word, {})
    return node


def _at(node: Node, *names: str) -> Node:
    for name in names:
        node = node.get(name, {})
    return node


def _devices(tree: Node) -> dict[str, str]:
    """Return the interface of each policy: `qos interface`, or `interfaces ... traffic-policy`."""
    devices: dict[str, str] = {}
    for dev, node in _at(tree, "qos", "interface").items():
        devices |= dict.fromkeys(node.get("egress", {}), dev)
    for named in _at(tree, "interfaces").values():
        for dev, node in named.items():
            devices |= dict.fromkeys(_at(node, "traffic-policy", "out"), dev)
    return devices


def _value(node: Node, key: str, default: str | None = None) -> str | None:
    """Return the value of a key."""
    return next(iter(node.get(key, {})), default)


def _rate(path: str, text: str | None, whole: int | None = None) -> int:
    """Return a rate in bit/s; a share is one of `whole`."""
    if text is None:
        raise InputError(f"{brief(path)}: bandwidth is missing")
    if text == "auto" or text.endswith("%"):
        share = text.removesuffix("%") if text != "auto" else "100"
        if whole is None or not share.isdecimal():
            raise InputError(
                f"{brief(path)}: bandwidth {brief(text)} is a share of the speed of the interface, "
                "which is not known here; write a rate, like 20mbit"
            )
        return whole * int(share) // 100
    match = re.fullmatch(r"([0-9]+)([a-z]*)", text)
    if match is None or match[2] not in MULTIPLES or int(match[1]) == 0:
        raise InputError(f"{brief(path)}: bandwidth {brief(text)} is not a rate, like 20mbit")
    return int(match[1]) * MULTIPLES[match[2]]


def _others(path: str, node: Node, known: tuple[str, ...]) -> Iterator[str]:
    """Yield the keys that have no effect."""
    for key, below in node.items():
        if key not in known and key not in IGNORED:
            yield " ".join([path, key, *below]) if len(below) == 1 else f"{path} {key}"


def _leaf(path: str, node: Node, default: str) -> str:
    """Return the qdisc of a type of queue with its words."""
    kind = _value(node, "queue-type", default)
    if kind not in WORDS:
        raise InputError(f"{brief(path)}: queue-type {brief(str(kind))} is not read")
    words = {"fq-codel": ["fq_codel"], "fair-queue": ["sfq"], "drop-tail": ["pfifo"]}[kind]
    for key in WORDS[kind]:
        value = _value(node, key)
        if value is not None:
            unit = "ms" if key in ("interval", "target") else ""
            words += [TC.get(key, key), f"{value}{unit}"]
    return " ".join([*words, "noecn"] if kind == "fq-codel" else words)


def _plain(kind: str) -> Any:
    """Return the reader of a policy that is one qdisc."""

    def read_one(path: str, node: Node, dev: str, lines: list[str]) -> Iterator[str]:
        lines.append(f"tc qdisc add dev {dev} root {_leaf(path, node, kind)}")
        return _others(path, node, WORDS[kind])

    return read_one


def _cake(path: str, node: Node, dev: str, lines: list[str]) -> Iterator[str]:
    words = ["cake"]
    if "bandwidth" in node:
        words += ["bandwidth", f"{_rate(path, _value(node, 'bandwidth'))}bit"]
    if rtt := _value(node, "rtt"):
        words += ["rtt", f"{rtt}ms"]
    isolation = node.get("flow-isolation", {})
    unknown = isolation.keys() - ISOLATION.keys()
    if unknown:
        raise InputError(f"{brief(path)}: flow-isolation {brief(min(unknown))} is unknown")
    words += [word for name, word in ISOLATION.items() if name in isolation] or ["nonat"]
    lines.append(f"tc qdisc add dev {dev} root {' '.join(words)}")
    return _others(path, node, ("bandwidth", "rtt", "flow-isolation"))


ISOLATION = {
    "blind": "flowblind", "dst-host": "dsthost", "dual-dst-host": "dual-dsthost",
    "dual-src-host": "dual-srchost", "triple-isolate": "triple-isolate", "flow": "flows",
    "host": "hosts", "nat": "nat", "src-host": "srchost",
}  # fmt: skip
"""Words of cake for `flow-isolation`."""


def _limiter(path: str, node: Node, dev: str, lines: list[str]) -> Iterator[str]:
    rate = _rate(path, _value(node, "bandwidth"))
    burst, latency = _value(node, "burst", "15k"), _value(node, "latency", "50")
    lines.append(
        f"tc qdisc add dev {dev} root tbf rate {rate}bit burst {burst} latency {latency}ms"
    )
    return _others(path, node, ("bandwidth", "burst", "latency"))


CLASS = (
    *("bandwidth", "burst", "ceiling", "codel-quantum", "flows", "interval", "match", "priority"),
    *("queue-limit", "queue-type", "target"),
)
"""Keys of a class of a shaper."""


def _shaper(path: str, node: Node, dev: str, lines: list[str]) -> Iterator[str]:
    speed = _rate(path, _value(node, "bandwidth"))
    classes = {int(one): below for one, below in node.get("class", {}).items() if one.isdecimal()}
    last = max(classes, default=0) + 1
    lines += [
        f"tc qdisc add dev {dev} root handle 1: htb default {last:x}",
        f"tc class add dev {dev} parent 1: classid 1:1 htb rate {speed}bit",
    ]
    if "default" not in node:
        raise InputError(f"{brief(path)}: default is missing")
    yield from _others(path, node, ("bandwidth", "class", "default"))
    for number, below in [*classes.items(), (last, node["default"])]:
        here = f"{path} {'default' if number == last else f'class {number}'}"
        yield from _class(here, number, below, speed, dev, lines)


def _class(
    path: str, number: int, node: Node, speed: int, dev: str, lines: list[str]
) -> Iterator[str]:
    """Add the class of a shaper, its queue and its filters."""
    rate = _rate(path, _value(node, "bandwidth", "100%"), speed)
    quantum = _value(node, "codel-quantum", "1514")
    words = f"htb rate {rate}bit burst {_value(node, 'burst', '15k')} quantum {quantum}"
    if priority := _value(node, "priority"):
        words += f" prio {priority}"
    if ceiling := _value(node, "ceiling"):
        words += f" ceil {_rate(path, ceiling, speed)}bit"
    if number == 1:  # no classes: the default replaces the class of the whole rate
        lines.append(f"tc class replace dev {dev} parent 1: classid 1:1 {words}")
    else:
        lines.append(f"tc class add dev {dev} parent 1:1 classid 1:{number:x} {words}")
    lines.append(f"tc qdisc add dev {dev} parent 1:{number:x} {_leaf(path, node, 'fq-codel')}")
    for n, (name, match) in enumerate(node.get("match", {}).items(), 1):
        place = f"tc filter add dev {dev} parent 1: protocol all prio {priority or n}"
        conditions = list(_conditions(match))
        if None in conditions or not conditions:
            yield f"{path} match {name}"
            continue
        handle = next((one for one in conditions if one and one.endswith("fw")), None)
        u32 = " ".join(f"match {one}" for one in conditions if one and not one.endswith("fw"))
        if handle:
            lines.append(f"{place} {handle} flowid 1:{number:x}")
        if u32:
            lines.append(f"{place} u32 {u32} flowid 1:{number:x}")
    yield from _others(path, node, CLASS)


def _conditions(match: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the conditions of a match in tc's words; None for one that is not read."""
    for key, below in match.items():
        value = next(iter(below), "")
        if key == "mark":
            yield f"handle {value} fw"
        elif key in ("ip", "ipv6"):
            protocol = "ip" if key == "ip" else "ip6"
            for field, inner in below.items():
                yield _condition(protocol, field, inner)
        elif key not in IGNORED:
            yield None


def _condition(protocol: str, field: str, inner: Node) -> str | None:
    """Return a condition on the header of a packet; None if it is not read."""
    value = next(iter(inner), "")
    if field == "dscp" and protocol == "ip":
        return f"ip dsfield {TOS.get(value, value)} 0xff"
    if field in ("source", "destination") and len(inner) == 1:
        side, key = field[0], next(iter(inner[value]), "")
        names = {("s", "address"): "src", ("d", "address"): "dst"}
        names |= {("s", "port"): "sport", ("d", "port"): "dport"}
        if (side, value) in names:
            mask = " 0xffff" if value == "port" else ""
            return f"{protocol} {names[side, value]} {key}{mask}"
    return None


KINDS = {
    "shaper": _shaper,
    "cake": _cake,
    "fq-codel": _plain("fq-codel"),
    "fair-queue": _plain("fair-queue"),
    "drop-tail": _plain("drop-tail"),
    "rate-control": _limiter,
}
"""Readers of the kinds of policies."""
