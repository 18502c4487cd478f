"""Final state of links in the lines of `tc -s qdisc show`, and as `tc -s -j qdisc show`."""

from typing import Any

from sojourn import tc
from sojourn._sojourn import InputError
from sojourn.result.result import Record, Result

Table = dict[str, Any]


def stats(result: Result) -> list[Table]:
    """Return one object per link, as `tc -s -j qdisc show` prints them.

    Counters cover the measured interval. A link is listed as a device of its name. Counters of
    Linux that have no counterpart are left out; a discipline that Linux does not have is listed
    under its own name, without options.
    """
    return [
        _link(name, record, result.scenario["links"][name]) for name, record in result.links.items()
    ]


def _link(name: str, record: Record, link: Table) -> Table:
    try:
        nearest = tc.translate(link["qdisc"], link["rate"])
    except InputError:
        nearest = {"kind": link["qdisc"]["name"], "options": {}, "shown": ""}
    series = record.series
    last = {key: series[key][-1] for key in series if len(series[key])}
    return {
        "kind": nearest["kind"],
        "handle": "1:",
        "dev": name,
        "root": True,
        "refcnt": 2,
        "options": nearest["options"],
        "bytes": int(record["departed_bytes"]),
        "packets": int(record["departed_packets"]),
        "drops": int(record["dropped_packets"]),
        "overlimits": _overlimits(nearest["kind"], record),
        "requeues": 0,
        "backlog": int(last.get("queue_bytes", 0)),
        "qlen": int(last.get("queue_packets", 0)),
        **_extra(nearest["kind"], record, last),
    }


def _overlimits(kind: str, record: Record) -> int:
    """Return what Linux counts as overlimits: early drops and marks of RED and its kin."""
    if kind in ("red", "choke"):
        return int(record["dropped_early_packets"] + record["marked_packets"])
    return 0


def _extra(kind: str, record: Record, last: Table) -> Table:
    """Return the counters of the qdisc itself that have the same meaning here."""
    full, marks = int(record["dropped_full_packets"]), int(record["marked_packets"])
    early = int(record["dropped_early_packets"])
    match kind:
        case "codel":
            counters = {"ecn_mark": marks, "drop_overlimit": full}
            return (
                {"count": int(last["gauge_count"]), **counters}
                if "gauge_count" in last
                else counters
            )
        case "fq_codel":
            return {"drop_overlimit": full, "ecn_mark": marks}
        case "pie":
            prob = {"prob": float(last["gauge_p"])} if "gauge_p" in last else {}
            return {
                **prob,
                "pkts_in": int(record["arrived_packets"]),
                "overlimit": full,
                "dropped": early,
                "ecn_mark": marks,
            }
        case "fq_pie":
            return {
                "pkts_in": int(record["arrived_packets"]),
                "overlimit": full,
                "dropped": early,
                "ecn_mark": marks,
            }
        case "red" | "choke":
            return {"marked": marks, "early": early, "pdrop": full, "other": 0}
        case "sfb":
            return {"earlydrop": early, "queuedrop": full, "marked": marks}
        case _:
            return {}


LINES = {
    "codel": (("count",), ("ecn_mark", "drop_overlimit")),
    "fq_codel": (("drop_overlimit", "ecn_mark"),),
    "pie": (("prob",), ("pkts_in", "overlimit", "dropped", "ecn_mark")),
    "fq_pie": (("pkts_in", "overlimit", "dropped", "ecn_mark"),),
    "red": (("marked", "early", "pdrop", "other"),),
    "choke": (("marked", "early", "pdrop", "other"),),
    "sfb": (("earlydrop", "queuedrop", "marked"),),
}
"""Lines of the counters of a qdisc, in the order of tc."""


def text(result: Result) -> str:
    """Format the final state in the lines of `tc -s qdisc show`."""
    return "\n".join(_text(one, result.scenario["links"][one["dev"]]) for one in stats(result))


def _text(one: Table, link: Table) -> str:
    try:
        shown = tc.translate(link["qdisc"], link["rate"])["shown"]
    except InputError:
        shown = ""
    lines = [
        f"qdisc {one['kind']} {one['handle']} dev {one['dev']} root refcnt 2 {shown} ",
        f" Sent {one['bytes']} bytes {one['packets']} pkt (dropped {one['drops']}, "
        f"overlimits {one['overlimits']} requeues {one['requeues']}) ",
        f" backlog {_size(one['backlog'])} {one['qlen']}p requeues {one['requeues']}",
    ]
    rows = ([f"{name} {one[name]:g}" for name in names if name in one] for names in _lines(one))
    lines.extend("  " + " ".join(words) for words in rows if words)
    return "\n".join(lines)


def _size(count: int) -> str:
    """Format bytes like tc: in Kb or Mb (1024) if that is nearly a whole number."""
    for unit, slack, name in ((1 << 20, 1024, "Mb"), (1 << 10, 16, "Kb")):
        times = round(count / unit)
        if count >= unit and abs(times * unit - count) < slack:
            return f"{times}{name}"
    return f"{count}b"


def _lines(one: Table) -> tuple[tuple[str, ...], ...]:
    return LINES.get(one["kind"], ())
