"""Senders of today, alone and in mixtures, and how the flows of a scenario get them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn_lab.reproduction.claims import NoRunsError

if TYPE_CHECKING:
    import polars as pl

Table = dict[str, Any]

CUBIC, BBR, BBR3, PRAGUE = (
    {"name": name, "profile": "linux"} for name in ("cubic", "bbr", "bbr3", "prague")
)


@dataclass(frozen=True)
class Sender:
    """A case: `name` as printed, and the TCPs that the flows use in turn.

    `marks` is True if disciplines that can mark packets do so instead of dropping them.
    """

    name: str
    tcps: tuple[Table, ...]
    marks: bool = False


THEN = "then"
SENDERS: dict[str, Sender] = {
    "cubic": Sender("CUBIC", (CUBIC,)),
    "bbr": Sender("BBR", (BBR,)),
    "bbr3": Sender("BBRv3", (BBR3,)),
    "ecn": Sender("CUBIC with ECN", ({**CUBIC, "ecn": True},), marks=True),
    "cubic+bbr": Sender("CUBIC next to BBR", (CUBIC, BBR)),
    "cubic+bbr3": Sender("CUBIC next to BBRv3", (CUBIC, BBR3)),
    "cubic+prague": Sender("CUBIC next to Prague", (CUBIC, PRAGUE), marks=True),
}
"""Today's senders: the profile linux. In a mixture half of the flows use each TCP."""

TODAY = tuple(SENDERS)
MIXTURES = tuple(name for name, one in SENDERS.items() if len(one.tcps) > 1)
EVERY = (THEN, *TODAY)
NAMES = {THEN: "the paper's TCP", **{name: one.name for name, one in SENDERS.items()}}
DISCIPLINES = {
    "fq_codel": "FQ-CoDel",
    "pie": "PIE",
    "cobalt": "COBALT",
    "cake": "CAKE",
    "dualpi2": "DualPI2",
}
"""Today's disciplines."""

MARKING = ("red", "ared", "red_opt", "codel", "pie", "cobalt", "hred", "pi")
"""Disciplines that mark only if told to; today's others do by default."""


def marking(qdisc: Mapping[str, Any], sender: str) -> Table:
    """Return a discipline that marks the sender's packets if it can and the sender uses ECN."""
    on = sender != THEN and SENDERS[sender].marks and qdisc["name"] in MARKING
    return {**qdisc, "ecn": True} if on else dict(qdisc)


def assigned(flows: Sequence[Table], sender: str, **more: Any) -> list[Table]:
    """Return the flows with the sender's TCPs in turn; THEN leaves them as they are.

    `more` are parameters of all TCPs; the packet size is the flow's own. A group of several flows
    is split into one group per TCP, of equal size. Flows without a TCP stay.
    """
    if sender == THEN:
        return list(flows)
    tcps, out, n = SENDERS[sender].tcps, [], 0
    for flow in flows:
        if "tcp" not in flow:
            out.append(flow)
            continue
        own = {"packet": flow["tcp"]["packet"], **more}
        count = flow.get("count", 1)
        if count == 1:
            out.append({**flow, "tcp": {**tcps[n % len(tcps)], **own}})
            n += 1
            continue
        for tcp in tcps:
            name = flow["name"] + (f"-{tcp['name']}" if len(tcps) > 1 else "")
            group = {**flow, "name": name, "tcp": {**tcp, **own}}
            out.append({**group, "count": count // len(tcps)})
    return out


def there(frame: "pl.DataFrame", names: Sequence[str]) -> list[str]:
    """Return the senders that ran. Raises NoRunsError if none did."""
    present = [name for name in names if name in set(frame["sender"])]
    if not present:
        raise NoRunsError("no runs with these senders")
    return present
