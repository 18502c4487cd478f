"""Configurations of sqm-scripts (`/etc/config/sqm`) as commands of tc, and back.

Source: sqm-scripts 95337de: run-openwrt.sh (options), defaults.sh, functions.sh (`get_stab_string`,
`get_cake_lla_string`, `get_target`, `get_limit`, `get_ecn`, `get_quantum`, `get_burst`), and the
scripts simple, simplest, simplest_tbf, piece_of_cake and layer_cake.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near
from sojourn._util.units import bps_of
from sojourn.formats.commands import MTU, Commands, Exported

CAKE = ("piece_of_cake.qos", "layer_cake.qos", "layer_cake_ct.qos")
"""Scripts that use cake, whatever `option qdisc` says."""

SCRIPTS = ("simple.qos", "simplest.qos", "simplest_tbf.qos", *CAKE)
"""Scripts whose rules are known."""

LIMIT = "1001"
"""Limit of a queue, in packets, unless an option gives one."""

WITH_LIMIT = re.compile(r".*codel|.*pie|pfifo_fast|sfq|pfifo")
WITH_TARGET = re.compile(r".*codel|.*pie")
WITH_ECN = re.compile(r".*codel|.*pie|.*red")
WITH_QUANTUM = re.compile(r".*fq_codel|fq_pie|drr")

TIME = re.compile(r"[0-9]+(s|secs?|ms|msecs?|us|usecs?)")
"""Times that are passed to tc as they are."""

OFF = ("0", "off", "no", "false")

IGNORED = {
    *("enabled", "interface", "download", "upload", "qdisc", "script", "linklayer", "overhead"),
    *("tcMTU", "tcTSIZE", "tcMPU", "linklayer_adaptation_mechanism", "ilimit", "elimit"),
    *("itarget", "etarget", "ingress_ecn", "egress_ecn", "iqdisc_opts", "eqdisc_opts"),
    *("squash_dscp", "squash_ingress", "qdisc_advanced", "qdisc_really_really_advanced"),
    *("linklayer_advanced", "debug_logging", "verbosity", "", "target"),
}
"""Options that are read, or that only LuCI and the logs use."""


def is_config(text: str) -> bool:
    """Return True if `text` is a configuration of sqm, in the notation of OpenWrt's UCI."""
    return re.search(r"^\s*config\s+['\"]?queue\b", text, re.MULTILINE) is not None


def to_commands(text: str) -> str:
    """Return commands of tc for the enabled queues of a configuration, as `read` does."""
    return read(text).text


def read(text: str) -> Commands:
    """Return commands of tc for the enabled queues of a configuration.

    The egress of interface X is device X, its ingress ifb4X, as sqm-scripts name it. The MTU is
    taken to be 1500 bytes.

    Raises
    ------
    InputError
        If a line cannot be parsed, no queue is enabled, a rate is missing, or a script is unknown.
    """
    commands: list[str] = []
    lost: list[tuple[str, str]] = []
    for options in _queues(text):
        if options.get("enabled", "1") in OFF:
            continue
        name = options.get("interface")
        if name is None:
            raise InputError("option interface: is missing in a queue")
        script = options.get("script", "simple.qos")
        if script not in SCRIPTS:
            raise InputError(
                f"{brief(name)}: option script: unknown script {brief(script)}"
                f"{near(script, list(SCRIPTS))}"
            )
        ifb = f"ifb4{name}"[:15]
        for side, dev in (("upload", name), ("download", ifb)):
            lines = _direction(name, options, side, dev)
            commands += lines
            if lines:
                lost += [(dev, text) for text in _lost(options, script)]
    if not commands:
        raise InputError("no queue of the configuration is enabled")
    return Commands("\n".join(commands), lost)


def _lost(options: Mapping[str, str], script: str) -> list[str]:
    """Return the options of a queue that have no effect in the commands."""
    lost = [f"option {key} '{value}'" for key, value in options.items() if key not in IGNORED]
    layer, mechanism = options.get("linklayer", "none"), _mechanism(options)
    cake = script in CAKE or options.get("qdisc", "").startswith("cake")
    if layer != "none" and mechanism != "tc_stab" and not (cake and mechanism == "cake"):
        lost.append(f"option linklayer_adaptation_mechanism '{mechanism}'")
    elif layer == "none" and options.get("overhead", "0") != "0":
        lost.append(f"option overhead '{options['overhead']}' without a linklayer")
    return lost


STAB = (
    *(("tcMTU", "mtu", "2047"), ("tcTSIZE", "tsize", "512"), ("tcMPU", "mpu", "0")),
    ("overhead", "overhead", "0"),
)
"""Options, words and defaults of the size table."""


def _stab(options: Mapping[str, str]) -> str:
    """Return the size table of the root, with a space after it; nothing if there is none."""
    layer = options.get("linklayer", "none")
    if layer == "none" or _mechanism(options) != "tc_stab":
        return ""
    words = " ".join(f"{word} {options.get(key, default)}" for key, word, default in STAB)
    return f"stab {words} linklayer {layer} "


def _mechanism(options: Mapping[str, str]) -> str:
    """Return the mechanism that accounts for the overhead."""
    mechanism = options.get("linklayer_adaptation_mechanism", "default")
    kind = "cake" if options.get("script") in CAKE else options.get("qdisc", "fq_codel")
    default = "cake" if kind == "cake" else "tc_stab"
    return default if mechanism in ("default", "") else mechanism


def _queues(text: str) -> list[dict[str, str]]:
    """Return the options of each section `queue`."""
    queues: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise InputError(f"line {number}: {str(error).lower()}") from None
        match words:
            case []:
                continue
            case ["config", kind, *_]:
                queues.append({"": kind})
            case ["option", key, value] if queues:
                queues[-1][key] = value
            case ["list", *_] | ["package", *_]:
                continue
            case _:
                raise InputError(f"line {number}: write option NAME 'VALUE'")
    return [one for one in queues if one[""] == "queue"]


def _direction(name: str, options: Mapping[str, str], side: str, dev: str) -> list[str]:
    """Return the commands of one direction; none if its rate is 0, which means no shaper."""
    text = options.get(side)
    if text is None or not text.isdecimal():
        raise InputError(f"{brief(name)}: option {side}: write the rate in kbit/s, like '20000'")
    rate = int(text)
    if rate == 0:
        return []
    script, kind = options.get("script", "simple.qos"), options.get("qdisc", "fq_codel")
    egress = side == "upload"
    if script in CAKE or kind.startswith("cake"):
        words = _cake(options, script, egress=egress)
        size = _stab(options)
        return [f"tc qdisc add dev {dev} root {size}cake bandwidth {rate}kbit {words}".rstrip()]
    leaf = _leaf(name, options, rate, egress=egress)
    if script == "simplest_tbf.qos":
        shaper = f"tbf rate {rate}kbit burst {_burst(rate)} latency 300ms"
        return [
            f"tc qdisc add dev {dev} root handle 1: {_stab(options)}{shaper}",
            f"tc qdisc add dev {dev} parent 1: handle 110: {leaf}",
        ]
    if script == "simple.qos" and (egress or _switch(options, "squash_ingress") is False):
        return _tiers(name, options, rate, dev, egress=egress)
    burst = f"burst {_burst(rate)} cburst {_burst(rate)}"
    limits = f"quantum {_burst(rate)} rate {rate}kbit ceil {rate}kbit {burst}"
    return [
        f"tc qdisc add dev {dev} root handle 1: {_stab(options)}htb default 10",
        f"tc class add dev {dev} parent 1: classid 1:1 htb {limits}",
        f"tc class add dev {dev} parent 1:1 classid 1:10 htb {limits} prio 0",
        f"tc qdisc add dev {dev} parent 1:10 handle 110: {leaf}",
    ]


def _tiers(
    name: str, options: Mapping[str, str], rate: int, dev: str, *, egress: bool
) -> list[str]:
    """Return the three classes of simple.qos, with the marks of its firewall rules."""
    size = _burst(rate)
    burst = f"burst {size} cburst {size}"
    ceil = max(rate - 16, 1)
    quanta = (300, 300, 300) if egress else (500, 1500, 300)
    lowest = 128 if egress else 32
    tiers = (
        f"rate {lowest}kbit ceil {max(rate // 3, 1)}kbit prio 1",
        f"rate {max(rate // 6, 1)}kbit ceil {ceil}kbit {burst} prio 2",
        f"rate {max(rate // 6, 1)}kbit ceil {ceil}kbit {burst} prio 3",
    )
    lines = [
        f"tc qdisc add dev {dev} root handle 1: {_stab(options)}htb default 12",
        f"tc class add dev {dev} parent 1: classid 1:1 htb quantum {size} rate {rate}kbit "
        f"ceil {rate}kbit {burst}",
    ]
    for n, (limits, quantum) in enumerate(zip(tiers, quanta, strict=True), 1):
        leaf = _leaf(name, options, rate, egress=egress, quantum=quantum)
        lines += [
            f"tc class add dev {dev} parent 1:1 classid 1:1{n} htb quantum {size} {limits}",
            f"tc qdisc add dev {dev} parent 1:1{n} handle 1{n}0: {leaf}",
        ]
    lines += [
        f"tc filter add dev {dev} parent 1: protocol ip prio {n} handle {n}/0xff fw classid 1:1{n}"
        for n in (1, 2, 3)
    ]
    return lines


def _cake(options: Mapping[str, str], script: str, *, egress: bool) -> str:
    """Return the words of cake, after its bandwidth, in the order of the script."""
    words: list[str] = []
    wide = options.get("linklayer", "none") != "none" and _mechanism(options) == "cake"
    layer = ["atm"] if options.get("linklayer") == "atm" else []
    layer += ["overhead", options.get("overhead", "0"), "mpu", options.get("tcMPU", "0")]
    if script in ("simplest.qos", "simplest_tbf.qos"):
        words.append("besteffort")
    if script == "simple.qos" and not egress and _switch(options, "squash_ingress"):
        words.append("besteffort")
    words += layer if wide else []
    if script in CAKE:
        words += ["diffserv3", "nat"]
        single = script == "piece_of_cake.qos"
        if single or (not egress and _switch(options, "squash_ingress")):
            words.append("besteffort")
        if not egress and _switch(options, "squash_dscp"):
            words.append("wash")
    return " ".join([*words, options.get("eqdisc_opts" if egress else "iqdisc_opts", "")]).strip()


def _switch(options: Mapping[str, str], key: str) -> bool:
    """Return True if an option is on, as it is by default."""
    return options.get(key, "1") not in OFF


def _leaf(
    name: str, options: Mapping[str, str], rate: int, *, egress: bool, quantum: int | None = None
) -> str:
    """Return the qdisc of a queue with its words."""
    letter = "e" if egress else "i"
    kind = options.get("qdisc", "fq_codel")
    words = [kind]
    if limit := options.get(f"{letter}limit") or (LIMIT if WITH_LIMIT.fullmatch(kind) else None):
        words += ["limit", limit]
    elif kind == "bfifo":
        words += ["limit", str(int(LIMIT) * MTU)]
    if WITH_TARGET.fullmatch(kind):
        words += _target(name, kind, options.get(f"{letter}target", ""), rate)
    ecn = options.get("egress_ecn" if egress else "ingress_ecn") or "ECN"
    if WITH_ECN.fullmatch(kind):
        words += ["ecn"] if ecn == "ECN" else ["noecn"]
    if quantum is not None and WITH_QUANTUM.fullmatch(kind):
        words += ["quantum", str(quantum)]
    return " ".join([*words, options.get(f"{letter}qdisc_opts", "")]).strip()


def _target(name: str, kind: str, target: str, rate: int) -> list[str]:
    """Return the target, and the interval of a slow line. `auto` and nothing mean the same."""
    if target.lower() == "default":
        return []
    if target and target.lower() != "auto":
        if not TIME.fullmatch(target):
            text = "is not a time like 5ms, auto or default"
            raise InputError(f"{brief(name)}: option target: {brief(target)} {text}")
        return ["target", target]
    # A packet of 33 cells of ATM at the rate of the line.
    us = max(5000, 13_992_000 // rate)
    interval = ["interval", f"{95_000 + us}us"] if kind.endswith("codel") else []
    return ["target", f"{us}us", *interval]


def _burst(rate: int) -> int:
    """Return the burst of a shaper in bytes: 1 ms at `rate` kbit/s, or a packet in cells of ATM."""
    return max(rate * 1000 // 8000, -(-(MTU + 48) // 48) * 53)


def write(links: Sequence[Exported]) -> list[str]:
    """Return a configuration with a queue for each interface; ifb4X is the ingress of X.

    Comments name what sqm-scripts cannot say.
    """
    lines: list[str] = []
    by_name = {one.dev: one for one in links}
    for dev, egress in by_name.items():
        if dev.startswith("ifb4") and dev[4:] in by_name:
            continue
        lines += _queue(dev, egress, by_name.get(f"ifb4{dev}"[:15]))
    return lines


def _queue(dev: str, egress: Exported, ingress: Exported | None) -> list[str]:
    """Return the section of an interface."""
    sides = [("e", "upload", egress)] + ([("i", "download", ingress)] if ingress else [])
    kinds = {str(one.leaf["kind"]) for _, _, one in sides}
    if len(kinds) > 1:
        raise InputError(f"{dev}: sqm has one qdisc for both directions, not {' and '.join(kinds)}")
    (kind,) = kinds
    script = "layer_cake.qos" if kind == "cake" else "simplest.qos"
    options = {
        "enabled": "1",
        "interface": dev,
        "script": script,
        "qdisc": kind,
        "qdisc_advanced": "1",
        "qdisc_really_really_advanced": "1",
        "linklayer": "none",
        "squash_dscp": "0",
        "squash_ingress": "0",
        "download": "0",
        "upload": "0",
    }
    comments: list[str] = []
    for letter, side, one in sides:
        words, rate, notes = _words(one)
        comments += notes
        options[side] = rate
        if kind == "cake":
            words.append("nonat")
        else:
            options[f"{letter}limit"] = _taken(words, "limit")
            options[f"{letter}target"] = "default"
            if WITH_ECN.fullmatch(kind):
                # fq_codel marks by default, the others only with `ecn`.
                marks = "ecn" in words or (kind == "fq_codel" and "noecn" not in words)
                ecn = "ECN" if marks else "NOECN"
                options["egress_ecn" if letter == "e" else "ingress_ecn"] = ecn
                words = [word for word in words if word not in ("ecn", "noecn")]
        options[f"{letter}qdisc_opts"] = " ".join(words)
    lines = [f"config queue '{re.sub(r'[^A-Za-z0-9_]', '_', dev)}'"]
    lines += [f"\toption {key} '{value}'" for key, value in options.items() if value]
    return [*dict.fromkeys(comments), *lines]


def _taken(words: list[str], name: str) -> str:
    """Remove a word with its value, and return the value; nothing if it is not there."""
    if name not in words:
        return ""
    at = words.index(name)
    value = words[at + 1]
    del words[at : at + 2]
    return value


def _words(one: Exported) -> tuple[list[str], str, list[str]]:
    """Return the words of the qdisc, the rate in kbit/s, and comments about the link."""
    words = str(one.leaf["line"]).split()[1:]
    comments = [line for line in one.lines if line.startswith("#") and ": " in line]
    shaped = _taken(words, "bandwidth") if one.leaf["kind"] == "cake" else ""
    rate = shaped or one.link.get("rate")
    if not rate or rate == "unlimited":
        raise InputError(f"{one.dev}: sqm needs a rate; export a link, or cake with a bandwidth")
    bits = bps_of(rate)
    if shaped and one.link.get("rate"):
        comments.append(f"# rate: the line behind cake's shaper, {one.link['rate']}, is not set")
    if bits % 1000:
        comments.append(f"# rate: sqm has whole kbit/s; {rate} is rounded down")
    return words, str(int(bits) // 1000), comments
