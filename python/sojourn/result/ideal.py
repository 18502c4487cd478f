"""Ideal completion times of transfers: of a lone transfer that no window limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.paths import hops_of, path_of
from sojourn._util.units import bps_of, bytes_of, seconds
from sojourn.result.result import Array, Record, Result
from sojourn.result.select import declared

SYN_OPTIONS = 8
"""Bytes of options that a SYN has in addition to a data segment, with `linux_syn`."""

ROUNDING_S = 1e-9
"""The simulator rounds the end of a transmission down to a nanosecond, at each link."""


@dataclass(frozen=True)
class Line:
    """A link at its best: the highest rate and the shortest delay that it has during the run.

    Attributes
    ----------
    bps : float
        Rate, bit/s.
    delay_s : float
        One-way delay.
    burst_bits : float or None
        Size of the token bucket in place of a transmitter; None without one.
    """

    bps: float
    delay_s: float
    burst_bits: float | None

    def serialisation_s(self, bits: Array) -> Array:
        """Return the transmission time of `bits`; 0 behind a token bucket."""
        taken: Array = bits / self.bps if self.burst_bits is None else bits * 0.0
        return taken


def completion_times_s(result: Result, done: dict[str, Array]) -> Array:
    """Return the ideal completion time of each finished transfer of TCP.

    It is the sum of

    - the base round trip, if the transfer waited for a connection: the propagation time of both
      directions, and the transmission of a packet without payload by each link of both,
    - with `fin`, the ack of the handshake, which goes before the data of a new connection,
    - the delays of the links on the path of the flow, and
    - the time in which these send its packets, headers included: the slowest link sends all of
      them one after the other, each further link the packet that is waited for.

    Parameters
    ----------
    result : Result
        Result of a run.
    done : dict of str to array
        Columns of transfers, like `Result.completions`.

    Returns
    -------
    array of float
        Times in seconds, in the order of `done`.

    Raises
    ------
    InputError
        If a transfer crosses a link with delivery opportunities, which has no rate.
    """
    ideal = np.zeros(len(done["flow"]))
    flows, numbers = list(result.flows.values()), numbers_of(result)
    lines: dict[str, Line] = {}
    for place in np.unique(done["flow"]):
        mine = done["flow"] == place
        flow = flows[place]
        group = declared(result, flow["group"])
        there, back = (
            [lines.setdefault(name, line_of(result, name)) for name in names]
            for names in (
                path_of(group, numbers[flow["name"]]),
                path_of(group, numbers[flow["name"]], "return_path"),
            )
        )
        header = bytes_of(group["tcp"]["header"])
        syn = header + (SYN_OPTIONS if group["tcp"].get("linux_syn") else 0)
        trip = flow["rtt_s"] + sum(
            float(line.serialisation_s(np.array(8.0 * syn))) for line in [*there, *back]
        )
        opened = np.minimum(done["startup_s"][mine], trip)
        payload = bytes_of(group["tcp"]["packet"]) - header
        sizes, acked = done["bytes"][mine].astype(float), group["tcp"].get("fin", False)
        lead = np.where(acked & (done["startup_s"][mine] > 0), 8.0 * header, 0.0)
        sent = _train_behind_s(there, lead, sizes, payload, header)
        ideal[mine] = opened + sum(line.delay_s for line in there) + sent
    return ideal


def slowdowns_of(result: Result, done: dict[str, Array]) -> Array:
    """Return the completion time of each transfer divided by the ideal, at least 1.

    A quotient below 1 by no more than the rounding of the simulator is 1.
    """
    took, ideal = done["duration_s"], completion_times_s(result, done)
    most = max((hops_of(g) for g in result.scenario["flows"]), default=0)
    equal = np.abs(took - ideal) <= 2 * (most + 1) * ROUNDING_S
    with np.errstate(divide="ignore"):  # a token bucket without delays sends in no time
        ratio = np.divide(took, ideal, out=np.ones(len(took)), where=took > 0)
    ratio[equal] = np.maximum(ratio[equal], 1.0)
    return ratio


def numbers_of(result: Result) -> dict[str, int]:
    """Return the index in its group of each flow."""
    seen: dict[str, int] = {}
    numbers = {}
    for flow in result.flows.values():
        numbers[flow["name"]] = seen.get(flow["group"], 0)
        seen[flow["group"]] = numbers[flow["name"]] + 1
    return numbers


def line_of(result: Result, name: str) -> Line:
    """Return the highest rate and the shortest delay of a link, with its changes and trace."""
    link = result.scenario["links"][name]
    trace: dict[str, Any] = link.get("trace", {})
    if "opportunities_ms" in trace:
        raise InputError(
            f"links.{name}.trace: has delivery opportunities in place of a rate, so a transfer "
            "over it has no ideal completion time; give the trace `bin_ms`"
        )
    settings: Sequence[Record] = [
        link,
        *(
            c["links"][name]
            for c in result.scenario.get("changes", [])
            if name in c.get("links", {})
        ),
    ]
    rates = [bps_of(one["rate"]) for one in settings if "rate" in one] + trace.get("rate_bps", [])
    delays = [seconds(one["delay"]) for one in settings if "delay" in one]
    delays += [ns / 1e9 for ns in trace.get("delay_ns", [])]
    burst = 8.0 * bytes_of(link["burst"]) if "burst" in link else None
    return Line(float(max(rates)), min(delays), burst)


def _train_behind_s(
    path: Sequence[Line], lead: Array, size: Array, payload: int, header: int
) -> Array:
    """Return the time of `_train_s` behind a packet of `lead` bits, which may be none.

    The train waits for that packet at one of the links.
    """
    longest = np.zeros(len(size))
    ahead = np.zeros(len(size))
    for place, line in enumerate(path):
        ahead = ahead + line.serialisation_s(lead)
        longest = np.maximum(longest, ahead + _train_s(path[place:], size, payload, header))
    return longest


def _train_s(path: Sequence[Line], size: Array, payload: int, header: int) -> Array:
    """Return the time in which `path` sends transfers of `size` bytes, without its delays.

    Full packets and a last one with the rest leave as a train. The last packet ends when the chain
    of packets that wait for each other does: the first packet up to a link, all packets there, and
    the last packet from there on.
    """
    packets = np.maximum(1, np.ceil(size / payload))
    full = np.full(len(size), 8.0 * (payload + header))
    last = 8.0 * (size - (packets - 1) * payload + header)
    longest = np.zeros(len(size))
    ahead = np.zeros(len(size))  # the time of a full packet up to here
    slowest = np.zeros(len(size))  # the longest time of a full packet on one link up to here
    behind = sum((line.serialisation_s(last) for line in path), np.zeros(len(size)))
    for line in path:
        ahead = ahead + line.serialisation_s(full)
        slowest = np.maximum(slowest, line.serialisation_s(full))
        several = ahead + (packets - 2) * slowest + behind
        longest = np.maximum(longest, np.where(packets > 1, several, behind))
        behind = behind - line.serialisation_s(last)
        if line.burst_bits is not None:
            waits = ((packets - 1) * full - line.burst_bits) / line.bps
            longest = np.maximum(longest, waits)
    return longest
