"""Shell commands that install a recommended setting, and those that undo it.

They can be run again at any time, and leave the device without a shaper if one of them fails. The
redirection of the download is the last step: its target is then up and has its qdisc.
"""

import math
from collections.abc import Mapping
from typing import Any

from sojourn import tc
from sojourn.recommendation.line import ASYMMETRY, SHAPED, Line
from sojourn.recommendation.link_layer import LinkLayer

PREFERENCE = 42
"""Preference of the filter, by which it is found again."""

NAME_MAX = 15
"""Longest name of a device."""

MTU = 1514
"""Largest packet on an Ethernet device, in bytes."""

QUANTUM_MAX = 200_000
"""Largest quantum of HTB, in bytes: above it the kernel warns."""

BURST_S = 1e-3
"""Time that a burst of HTB lasts, as in sqm-scripts: a slow router wakes up late."""


def ifb_name(dev: str) -> str:
    """Return the name of our own ifb for a device, which no other tool uses."""
    return f"sj-{dev}"[:NAME_MAX]


def undo(dev: str, ifb: str, *, shaped: bool) -> list[str]:
    """Return the commands that remove a setting. They succeed in any state of the device."""
    root = f"tc qdisc del dev {dev} root 2>/dev/null || true"
    if not shaped:
        return [root]
    return [
        f"tc filter del dev {dev} ingress protocol all pref {PREFERENCE} 2>/dev/null || true",
        f"if tc qdisc show dev {dev} | grep -q 'qdisc ingress ' && "
        f'[ -z "$(tc filter show dev {dev} ingress)" ]; then tc qdisc del dev {dev} ingress; fi',
        root,
        f"ip link del {ifb} 2>/dev/null || true",
    ]


def install(
    line: Line, qdisc: Mapping[str, Any], dev: str, ifb: str, layer: LinkLayer | None
) -> list[str]:
    """Return the commands that install a discipline on a device, in a subshell.

    A shaper is installed in both directions; without one, the qdisc of the upload alone.
    """
    words, losses = words_of(qdisc, dev)
    modules = [f"sch_{words.split()[0]}"]
    steps = [f"tc qdisc del dev {dev} root 2>/dev/null || true",
             f"tc qdisc add dev {dev} root handle 1: {words}"]  # fmt: skip
    check: list[str] = []
    if line.shaped:
        is_cake = qdisc["name"] == "cake"
        modules += ["ifb", "act_mirred", "cls_matchall", *(() if is_cake else ("sch_htb",))]
        check = [
            f"if ip link show dev ifb4{dev} >/dev/null 2>&1; then",
            f'echo "sqm-scripts shapes {dev}: stop it first" >&2; exit 1; fi',
        ]
        steps = [
            f"# download: ingress of {dev}, through {ifb}",
            f"ip link show dev {ifb} >/dev/null 2>&1 || ip link add {ifb} type ifb",
            f"ip link set dev {ifb} up",
            *_shaper(line, words, ifb, dev, layer, is_download=True),
            f"# upload: egress of {dev}",
            *_shaper(line, words, dev, dev, layer, is_download=False),
            "# the redirection is the last step",
            f"tc qdisc show dev {dev} | grep -Eq 'qdisc (ingress|clsact) ' || "
            f"tc qdisc add dev {dev} handle ffff: ingress",
            f"tc filter del dev {dev} ingress protocol all pref {PREFERENCE} 2>/dev/null || true",
            f"tc filter add dev {dev} ingress protocol all pref {PREFERENCE} matchall "
            f"action mirred egress redirect dev {ifb}",
        ]
    return [
        *losses,
        "(",
        "set -e",
        *check,
        "undo() {",
        *undo(dev, ifb, shaped=line.shaped),
        "}",
        "trap '[ $? = 0 ] || { undo; "
        f'echo "not installed; {dev} has the default queue" >&2; }}\' EXIT',
        f"for module in {' '.join(modules)}; do modprobe -q $module 2>/dev/null || true; done",
        *steps,
        ")",
    ]


def words_of(qdisc: Mapping[str, Any], dev: str) -> tuple[str, list[str]]:
    """Return the words of a discipline for tc, and comments on what tc cannot say.

    Raises InputError if Linux has no qdisc for it.
    """
    lines = tc.export(dict(qdisc), dev=dev).splitlines()
    comments = [one for one in lines if one.startswith("#")]
    return lines[-1].split(" handle 1: ")[1], comments


def _shaper(
    line: Line, words: str, on: str, dev: str, layer: LinkLayer | None, *, is_download: bool
) -> list[str]:
    """Return the commands for the shaper of a direction on the device `on`."""
    kbit = (line.down_bps if is_download else line.up_bps) * SHAPED / 1e3
    clear = f"tc qdisc del dev {on} root 2>/dev/null || true"
    if words.split()[0] == "cake":
        name, *more = words.split(" ", 1)
        own = cake_words(line, layer, is_download=is_download)
        settings = " ".join([name, f"bandwidth {round(kbit)}kbit", own, *more])
        return [clear, f"tc qdisc add dev {on} root handle 1: {settings}"]
    rate, burst, quantum = htb_numbers(round(kbit * (layer.share() if layer else 1.0)))
    stab = layer.stab(dev) if layer else ""
    return [
        clear,
        f"tc qdisc add dev {on} root handle 1: {stab}htb default 1",
        f"tc class add dev {on} parent 1: classid 1:1 htb rate {rate}kbit burst {burst} "
        f"cburst {burst} quantum {quantum}",
        f"tc qdisc add dev {on} parent 1:1 handle 10: {words}",
    ]


def htb_numbers(kbit: int) -> tuple[int, int, int]:
    """Return the rate of a class of HTB in kbit/s, its burst and its quantum in bytes."""
    burst = max(round(kbit * 1e3 * BURST_S / 8), math.ceil((MTU + 48) / 48) * 53)
    return kbit, burst, min(QUANTUM_MAX, max(MTU, burst))


def cake_words(line: Line, layer: LinkLayer | None, *, is_download: bool) -> str:
    """Return the words of CAKE for a direction of a line behind NAT.

    On the way in, marks of the operator are not trusted, and dropped packets have already crossed
    the line (`ingress`). Hosts share the line equally by their inner addresses (`nat`).
    """
    if is_download:
        words = ["besteffort", "dual-dsthost", "nat", "wash", "ingress"]
    else:
        words = ["dual-srchost", "nat"]
        if line.down_bps >= ASYMMETRY * line.up_bps:
            words.append("ack-filter")
    return " ".join([*words, *([layer.cake] if layer else [])])
