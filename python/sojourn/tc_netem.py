"""Words of netem and of stab for the impairments and the overhead of a canonical link."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from sojourn._util.units import bytes_of
from sojourn.scenario.describe import LOSSES

Table = Mapping[str, Any]

LIMIT = 10_000
"""Smallest limit of netem for a link without one: its packets in flight count towards it."""

MODELS = dict(zip(("random", "gemodel", "state"), LOSSES, strict=True))
"""Models of loss, and their probabilities in the order of netem."""

ETHERNET_HEADER = 14
"""Bytes that Linux counts in the length of a packet on an Ethernet device."""


def words(link: Table) -> tuple[str, list[str]]:
    """Return the words of netem for a canonical link, "" if it needs none, and what they lose."""
    lost: list[str] = []
    parts = _delay(link, lost)
    parts += _loss(link["loss"])
    for key in ("duplicate", "corrupt"):
        if chance := link.get(key):
            parts.append(f"{key} {_chance(chance)}")
    if reorder := link.get("reorder"):
        gap = f" gap {reorder['gap']}" if reorder["gap"] != 1 else ""
        parts.append(f"reorder {_chance(reorder)}{gap}")
    if slot := link.get("slot"):
        parts.append(_slot(slot, lost))
    if "outages" in link:
        lost.append("outages: netem loses packets at random only")
    limit = link.get("in_flight_limit")
    if of_rate := rate(link):
        queue = link["qdisc"]["limit"]
        if link["delay"] != "0s" and limit != queue:
            lost.append("in_flight_limit: netem has one limit, with the packets of the queue")
        limit = queue
        parts.append(of_rate)
    if parts or limit:
        parts.insert(0, f"limit {limit[:-1] if limit else LIMIT}")
    if parts and link["loss"]:
        lost.append("loss: netem loses packets before the queue, sojourn after it")
    return " ".join(parts), lost


def rate(link: Table) -> str:
    """Return the words of netem for a rate with cells of any size, "" if the link has none.

    Only netem has such cells, with a FIFO queue of packets: `limit` counts its packets and those in
    flight.
    """
    first, *rest = link.get("overhead", "").split() or [""]
    qdisc = link["qdisc"]
    plain = qdisc["name"] == "droptail" and qdisc["policy"] == "tail" and "burst" not in link
    limit = qdisc.get("limit", "")
    if "cells" not in rest or "mpu" in rest or not plain or not limit.endswith("p"):
        return ""
    payload, more = rest[rest.index("cells") + 1 :]
    own = 0 if first == "raw" else int(first)
    return f"rate {link['rate']} {own - ETHERNET_HEADER} {payload} {more}"


def stab(link: Table) -> tuple[str, list[str]]:
    """Return the words of stab at the root of an Ethernet device, and what they lose."""
    if "overhead" not in link:
        return "", []
    first, *rest = link["overhead"].split()
    values = dict(pairwise(rest))
    own = 0 if first == "raw" else int(first)
    text = f" stab overhead {own - ETHERNET_HEADER}"
    text += f" linklayer {'atm' if 'atm' in rest else 'ethernet'}"
    text += f" mpu {values['mpu']}" if "mpu" in values else ""
    lost = ["overhead ptm: stab has no PTM; cake has"] if "ptm" in rest else []
    if "cells" in rest:
        payload = rest[rest.index("cells") + 1]
        lost.append(f"overhead cells {payload}: only netem has them, with a FIFO queue of packets")
    return text, lost


def _delay(link: Table, lost: list[str]) -> list[str]:
    jitter = link.get("jitter")
    if not jitter:
        needed = link["delay"] != "0s" or "reorder" in link
        return [f"delay {link['delay']}"] if needed else []
    text = f"delay {link['delay']} {jitter['size']}"
    text += f" {percent(jitter['correlation'])}" if jitter["correlation"] else ""
    if not jitter["reorders"]:
        lost.append("jitter in order: netem keeps the order only with a rate of its own")
    return [text + _distribution(jitter["distribution"], "jitter", lost)]


def _distribution(distribution: Any, key: str, lost: list[str]) -> str:
    if distribution == "uniform":
        return ""
    if isinstance(distribution, list):
        lost.append(f"{key}.distribution: tc reads a table from a file in its own folder")
        return ""
    return f" distribution {distribution}"


def _loss(loss: Any) -> list[str]:
    if not isinstance(loss, Mapping):
        return [f"loss {percent(loss)}"] if loss else []
    model, keys = next((model, keys) for model, keys in MODELS.items() if keys[0] in loss)
    values = [percent(loss[key]) for key in keys if key in loss]
    return [f"loss {model} {' '.join(values)}" + (" ecn" if loss.get("ecn") else "")]


def _slot(slot: Table, lost: list[str]) -> str:
    if "min" in slot:
        text = f"slot {slot['min']} {slot['max']}"
    elif isinstance(slot["distribution"], str) and slot["distribution"] != "uniform":
        text = f"slot distribution {slot['distribution']} {slot['delay']} {slot['jitter']}"
    else:
        lost.append("slot.distribution: tc has names of files only")
        text = f"slot {slot['delay']} {slot['delay']}"
    text += f" packets {slot['packets']}" if "packets" in slot else ""
    return text + (f" bytes {bytes_of(slot['bytes'])}" if "bytes" in slot else "")


def _chance(chance: Table) -> str:
    extra = f" {percent(chance['correlation'])}" if chance["correlation"] else ""
    return percent(chance["probability"]) + extra


def percent(share: float) -> str:
    """Return a share as tc writes it."""
    return f"{100 * share:.10g}%"
