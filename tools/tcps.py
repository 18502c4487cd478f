"""Page which-tcp.md: the profile of each TCP name, its settings, and what it lacks."""

from typing import Any

import pages

Spec = dict[str, Any]

FEATURES = {
    "rack": "RACK",
    "reordering_window": "reordering window",
    "tlp": "tail loss probe",
    "prr": "PRR",
    "timestamps": "RTT by timestamps",
    "frto": "F-RTO",
    "dsack": "DSACK",
    "rtt_per_ack": "RTT per ack",
    "linux_acks": "quick acks and SACK compression",
    "autotuning": "receive window autotuning",
    "hystart": "HyStart",
    "pacing": "pacing",
    "fin": "FIN and handshake ACK",
    "ecn": "ECN",
}
"""Flags of a TCP, as the RFCs or Linux call them. One that is no parameter is in no TCP."""

CONTROLS = "bic cdg highspeed htcp hybla illinois nv scalable veno westwood yeah"

OF_LINUX = {
    **dict.fromkeys(CONTROLS.split(), "6.12 in user mode"),
    **dict.fromkeys(("bbr", "cubic", "dctcp", "reno"), "7.3.4 recorded, 6.18 live"),
    "bbr3": "7.3.4 with Google's version 3, recorded; 6.12 with it in user mode",
    "prague": "7.3.4 with L4STeam's Prague 0.7, recorded",
}
"""Kernel that each name is compared with."""

PROFILES = ("linux", "rfc", "ns2")

OPTIONAL = ("hystart", "pacing", "ecn")
"""Features that hosts lack without a fault: not listed as absent."""

WITHOUT_SACK = ("newreno", "reno", "tahoe")
"""TCPs without selective acknowledgements, except in the profile linux."""

INTRODUCTION = """\
# Which TCP am I running?

A name without further settings means what hosts run today where hosts have it: `cubic`, `reno`,
`bbr`, `bbr3`, `dctcp`, `prague` and Linux's less used controls have the profile `linux`. **A flow
without `tcp` runs `cubic`.** The other names have the profile `rfc`.

- `linux`: byte counting with the settings of Linux's stack. `reno` has SACK. For results that
  should hold for today's hosts.
- `rfc`: byte counting with the RFCs alone: a minimum timeout of 1 s, headers of 40 B, no RACK, no
  PRR. For papers and textbooks, and to compare one mechanism.
- `ns2`: packet counting, the one-way agents of ns-2.35, a clock of 10 ms. For papers that used
  ns-2.
- `quic`: packet numbers and probe timeouts of RFC 9002, for `newreno`, `cubic` and `bbr`. Compared
  with [quinn](../../reports/validation-quic.md).

```text
tcp = "cubic"                                  # as hosts run it
tcp = { name = "cubic", rack = false }         # the same without RACK
tcp = { name = "cubic", profile = "rfc" }      # RFC 9438 without extensions
tcp = { name = "reno", profile = "ns2" }       # ns-2.35's Agent/TCP/Reno
```

The profile sets the defaults of the other parameters, and each of them can be set on its own.
`profile = "linux"` is possible for every TCP with SACK, so not for `newreno` and `tahoe`, and
`profile = "ns2"` for `tahoe`, `reno`, `newreno` and `sack`. Names like `linux_cubic` are aliases of
the same name (`cubic`) with the profile `linux`. A congestion control in Python has the profile
`rfc` unless it is set. `sojourn list cubic` shows every parameter with its value. Do not mix
profiles in one figure.
"""

COMPARED = """\
## Compared with

Profile `linux` is compared with recordings of the packets of Linux 7.3.4 in [Linux's TCP through
Linux's disciplines](../../reports/validation-linux-tcp.md) and in [Validation of senders against
Linux](../../reports/validation-senders.md), and with the kernel of a machine (6.18) in [Accuracy of
live links](../concepts/live-accuracy.md#kernel-tcp-and-simulated-tcp). `bbr3` has no reaction to
ECN, which Google's version 3 has on paths below 5 ms. `prague` has bursts of one segment. Neither
has PRR: both set their rate themselves, in Linux as here. Known differences are on those pages, and
[How accurate is the TCP?](../concepts/accuracy.md) has the errors of all comparisons in one table.

ns-3's default is CUBIC with SACK, PRR, timestamps, and a minimum timeout of 1 s. Close to it:
`tcp = { name = "cubic", profile = "rfc", prr = true, header = "52B" }`.

## Traps

`sojourn explain` and the warnings of a run name these:

- BBR with the profile `rfc` on a link that loses 3 % of the packets at random, BBRv3 from 0.3 %.
  Without RACK, a lost retransmission waits for a timeout. At 50 Mbit/s and 50 ms (3 seeds) BBR
  then has 41 in place of 45 Mbit/s (at 5 %: 21 in place of 43), BBRv3 28 in place of 42.
- `rto_min` below the receiver's delayed ack: segments time out without a loss.
- A receive window below the bandwidth-delay product: the window limits, not the link.
- A clock (`tick`) that is far coarser than the round-trip time, as in the profile `ns2` on short
  paths: timeouts last many round trips.
"""


def page(specs: list[Spec]) -> str:
    """Return the page."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for profile in PROFILES:
        for spec in specs:
            if profile in spec["values"]:
                default = spec["profile"] == profile
                name = f"**`{spec['name']}`**" if default else f"`{spec['name']}`"
                rows.setdefault((profile, *_cells(spec, profile)), []).append(name)
    head = "names | profile | what is in | what is out | compared with Linux"
    cells = [[", ".join(names), f"`{profile}`", *rest] for (profile, *rest), names in rows.items()]
    title = ["## All names", "", "A name is bold where the profile is its default.", ""]
    return "\n".join([INTRODUCTION, *title, *pages.table(head, cells), COMPARED])


def _cells(spec: Spec, profile: str) -> list[str]:
    """Return what a TCP has in a profile, what it lacks, and the kernel compared with."""
    values = spec["values"][profile]
    sack = profile == "linux" or spec["name"] not in WITHOUT_SACK
    there = {name: values.get(key) == "true" for key, name in FEATURES.items()}
    has = ["SACK"] * sack + [name for name, is_on in there.items() if is_on]
    optional = [FEATURES[key] for key in OPTIONAL]
    lacks = ["SACK"] * (not sack)
    lacks += [name for name, is_on in there.items() if not is_on and name not in optional]
    if spec["name"] in ("bbr", "bbr3", "prague") and profile == "linux":
        lacks.remove("PRR")  # as in Linux
    has.append(f"minimum timeout {values['rto_min']}")
    has.append(f"header {values['header']}")
    kernel = OF_LINUX.get(spec["name"], "-") if profile == "linux" else "-"
    return [", ".join(has), ", ".join(lacks), kernel]
