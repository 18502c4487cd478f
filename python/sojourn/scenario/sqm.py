"""Configurations of sqm-scripts (`/etc/config/sqm`) as commands of tc."""

import re
import shlex

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief

SINGLE = ("simplest.qos", "simplest_tbf.qos", "piece_of_cake.qos")
"""Scripts with one queue in each direction."""

CAKE = ("piece_of_cake.qos", "layer_cake.qos", "layer_cake_ct.qos")
"""Scripts that use cake, whatever `option qdisc` says."""


def is_config(text: str) -> bool:
    """Return True if `text` is a configuration of sqm, in the notation of OpenWrt's UCI."""
    return re.search(r"^\s*config\s+['\"]?queue\b", text, re.MULTILINE) is not None


def to_commands(text: str) -> str:
    """Return commands of tc for the enabled queues of a configuration.

    The egress of interface X is device X, its ingress ifb4X, as sqm-scripts name it.

    Raises
    ------
    InputError
        If a line cannot be parsed, no queue is enabled, a rate is missing, or a script has several
        queues.
    """
    commands: list[str] = []
    for options in _queues(text):
        if options.get("enabled", "1") in ("0", "off", "no", "false"):
            continue
        name = options.get("interface")
        if name is None:
            raise InputError("option interface: is missing in a queue")
        script = options.get("script", "simple.qos")
        if script not in (*SINGLE, *CAKE):
            raise InputError(
                f"{brief(name)}: {brief(script)} has several queues, and a link has one; "
                "simplest.qos and piece_of_cake.qos have one"
            )
        for side, dev in (("upload", name), ("download", f"ifb4{name}")):
            commands += _direction(name, options, side, dev)
    if not commands:
        raise InputError("no queue of the configuration is enabled")
    return "\n".join(commands)


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


def _direction(name: str, options: dict[str, str], side: str, dev: str) -> list[str]:
    """Return the commands of one direction; none if its rate is 0, which means no shaper."""
    rate = options.get(side)
    if rate is None or not rate.isdecimal():
        raise InputError(f"{brief(name)}: option {side}: write the rate in kbit/s, like '20000'")
    if int(rate) == 0:
        return []
    letter = "e" if side == "upload" else "i"
    words = [options[f"{letter}qdisc_opts"]] if options.get(f"{letter}qdisc_opts") else []
    if options.get("script") in CAKE:
        return [" ".join([f"tc qdisc add dev {dev} root cake bandwidth {rate}kbit", *words])]
    kind = options.get("qdisc", "fq_codel")
    for key, word in (("limit", "limit"), ("target", "target")):
        if options.get(letter + key):
            words.insert(0, f"{word} {options[letter + key]}")
    ecn = options.get("egress_ecn" if letter == "e" else "ingress_ecn")
    if ecn and kind in ("fq_codel", "codel", "pie"):
        words.append(ecn.lower())
    return [
        f"tc qdisc add dev {dev} root handle 1: htb default 10",
        f"tc class add dev {dev} parent 1: classid 1:10 htb rate {rate}kbit ceil {rate}kbit",
        " ".join([f"tc qdisc add dev {dev} parent 1:10 handle 110: {kind}", *words]),
    ]
