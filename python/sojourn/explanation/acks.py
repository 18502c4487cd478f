"""Rule about acknowledgements that waited in the queue of the opposite direction."""

from collections.abc import Iterator

from sojourn._util.paths import links_of
from sojourn._util.units import duration
from sojourn.explanation import links, queues
from sojourn.explanation.finding import Finding
from sojourn.result.result import Result

NAMED_MAX = 3
"""Largest number of groups that a sentence names."""


def delayed_acks(result: Result) -> Iterator[Finding]:
    """Report TCP flows whose ACKs waited behind the data of other flows.

    Only links with one queue are considered: there, ACKs wait as long as the data do. With a queue
    per flow or class, the delay of the link says nothing about ACKs.
    """
    flows = [flow for flow in result.scenario["flows"] if flow["count"]]
    for name, link in links.listed(result):
        median = link["sojourn_p50_s"]
        qdisc = result.scenario["links"][name]["qdisc"]
        if median is None or median < links.STANDING_S or not queues.has_one_queue(qdisc):
            continue
        data = [flow["name"] for flow in flows if name in links_of(flow)]
        acked = [
            flow["name"]
            for flow in flows
            if "tcp" in flow and name in links_of(flow, "return_path") and flow["name"] not in data
        ]
        if not data or not acked:
            continue
        yield Finding(
            "ACKs delayed",
            f"ACKs of {_names(acked)} waited in the queue of link {name} behind the data of "
            f"{_names(data)}: half of its packets waited {duration(median)} or longer, which is "
            f"added to the round-trip time of {_names(acked)}. A queue per flow there, like "
            "fq_codel, lets ACKs pass.",
            {f"links.{name}.sojourn_p50_s": median},
            change=(f"{name}.qdisc=fq_codel",),
        )


def _names(groups: list[str]) -> str:
    """Join the names of groups, at most `NAMED_MAX` of them."""
    more = len(groups) - NAMED_MAX
    return ", ".join(groups[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
