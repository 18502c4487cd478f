"""Formats that are recognised and refused, with the commands that show the queues instead."""

import re
from dataclasses import dataclass

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.formats.commands import Commands


@dataclass(frozen=True)
class Other:
    """Format that is not read.

    Attributes
    ----------
    pattern : str
        Regular expression for a line by which the format is recognised; its first group is the key
        that the message names.
    reason : str
        Reason, and the way round.
    """

    pattern: str
    reason: str

    def recognises(self, text: str) -> bool:
        """Return True if a line of `text` is of this format."""
        return re.search(self.pattern, text, re.MULTILINE) is not None

    def refuse(self, text: str) -> Commands:
        """Raise InputError with the first key of this format."""
        match = re.search(self.pattern, text, re.MULTILINE)
        key = f"{brief(match[1].strip())}: " if match else ""
        raise InputError(f"{key}{self.reason}")


OTHERS = {
    "vyos": Other(
        r"^\s*(set (?:qos|traffic-policy) .*|(?:qos|traffic-policy) \{|policy shaper .*)$",
        "a policy of VyOS is not read; import the output of `tc -s qdisc show` and `tc class show` "
        "of the router",
    ),
    "dummynet": Other(
        r"^\s*((?:ipfw|dnctl) (?:pipe|sched|queue) .*|[0-9]+:\s+[0-9.]+ [KMG]?bit/s .*"
        r"|sched [0-9]+ type .*|<(?:pipe|dummynet)>.*|q[0-9]+ .*sl\..*)$",
        "dummynet of FreeBSD is not read: its FQ-CoDel has no overhead, and other defaults (ECN "
        'off); write the discipline, like "fq_codel(limit=10240p, ecn=false)"',
    ),
    "routeros": Other(
        r"^\s*(/queue (?:type|simple|tree).*|add .*\bkind=(?:cake|fq-codel|[pb]fifo|sfq|red).*)$",
        "a queue of RouterOS is not read; write its words as tc's, like "
        '"tc: cake bandwidth 20mbit"',
    ),
}
"""Formats by name."""
