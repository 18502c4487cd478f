"""Checks of summary.json, the file of a result: everything that its readers rely on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util.typed_json import checked, read_json
from sojourn.custom import trust as trusting

LARGEST = 1e18
"""Largest number in a summary."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
Number: TypeAlias = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Positive: TypeAlias = Annotated[float, Meta(ge=0, le=LARGEST)]

Scalar: TypeAlias = (
    bool | str | Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)] | Number | list[Count] | None
)
"""Value of a summary, also of one that this version does not know."""

Table: TypeAlias = dict[str, Any]


class StoredLink(msgspec.Struct):
    """Summary of a link."""

    qdisc: str
    goodput_bps: Positive
    utilisation: Positive | None
    loss_rate: Positive | None
    mark_rate: Positive | None
    queue_mean_bytes: Positive | None
    queue_std_bytes: Positive | None
    queue_mean_packets: Positive | None
    queue_std_packets: Positive | None
    sojourn_mean_s: Positive | None
    sojourn_std_s: Positive | None
    sojourn_p50_s: Positive | None
    sojourn_p95_s: Positive | None
    sojourn_p99_s: Positive | None
    sojourn_max_s: Positive | None
    arrived_packets: Count
    departed_packets: Count
    dropped_packets: Count
    dropped_full_packets: Count
    dropped_early_packets: Count
    dropped_late_packets: Count
    marked_packets: Count
    lost_on_wire_packets: Count
    arrived_bytes: Count
    departed_bytes: Count
    dropped_bytes: Count
    consecutive_loss: list[Count]
    marked_on_wire_packets: Count | None = None
    duplicated_packets: Count | None = None
    corrupted_packets: Count | None = None
    reordered_packets: Count | None = None
    dropped_buffer_packets: Count | None = None
    queue_max_bytes: Count | None = None


class StoredClass(msgspec.Struct):
    """Summary of a class at all ports of a switch."""

    dropped_buffer_packets: Count
    queue_max_bytes: Count


class StoredSwitch(msgspec.Struct):
    """Summary of a switch."""

    buffer_max_bytes: Count
    classes: dict[str, StoredClass] | UnsetType = UNSET


class StoredFlow(msgspec.Struct, tag_field="kind", kw_only=True):
    """Summary of a flow of any kind."""

    name: str
    group: str
    goodput_bps: Positive
    rtt_s: Positive
    sent_packets: Count
    retransmitted_packets: Count
    timeouts: Count | None
    completed: Count
    fct_mean_s: Positive | None
    fct_p50_s: Positive | None
    fct_p99_s: Positive | None
    started: Count | UnsetType = UNSET
    unfinished: Count | UnsetType = UNSET
    refused: Count | UnsetType = UNSET
    video_segments: Count | UnsetType = UNSET
    video_rate_bps: Positive | UnsetType | None = UNSET
    video_switches: Count | UnsetType = UNSET
    video_startup_s: Positive | UnsetType | None = UNSET
    video_stalls: Count | UnsetType = UNSET
    video_stalled_s: Positive | UnsetType | None = UNSET
    frames: Count | UnsetType = UNSET
    lost_frames: Count | UnsetType = UNSET
    frame_delay_mean_s: Positive | UnsetType | None = UNSET
    frame_delay_p50_s: Positive | UnsetType | None = UNSET
    frame_delay_p95_s: Positive | UnsetType | None = UNSET
    frame_delay_p99_s: Positive | UnsetType | None = UNSET
    frame_delay_max_s: Positive | UnsetType | None = UNSET


class StoredTcp(StoredFlow, tag="tcp", kw_only=True):
    """Summary of a TCP flow."""


class StoredUdp(StoredFlow, tag="udp", kw_only=True):
    """Summary of a UDP flow."""

    received_packets: Count
    lost_packets: Count
    loss_rate: Positive | None
    delay_mean_s: Number | None
    delay_p50_s: Number | None
    delay_p95_s: Number | None
    delay_p99_s: Number | None
    delay_max_s: Number | None
    jitter_s: Positive | None


class StoredLive(msgspec.Struct):
    """Accuracy report of a run on real packets."""

    warnings: list[str]


class StoredSummary(msgspec.Struct):
    """Contents of summary.json."""

    sojourn: str
    scenario: Table
    links: dict[str, Table]
    flows: list[StoredTcp | StoredUdp]
    switches: dict[str, StoredSwitch] | UnsetType = UNSET
    live: StoredLive | UnsetType = UNSET


FIELDS = {"video": "video_", "call": "frame"}
"""Part of the names of the fields of a flow by the name of its source."""


def read_summary(path: Path, *, trust: bool = False) -> Table:
    """Read the summary of a result, with the canonical scenario of this version.

    With `trust`, Python code that the scenario names may run later.

    Raises
    ------
    InputError
        If the file cannot be read, a field is missing or has another type, or the summary does not
        belong to the scenario. The message names the file and the field.
    """
    tree: Table = read_json(path)
    trusting.read(tree, path, trust)
    try:
        whole = checked(tree, StoredSummary)
        tree["scenario"] = canonical_of(whole.scenario)
        _check_links(tree)
        _same("switches", *(list(one.get("switches", {})) for one in (tree, tree["scenario"])))
        _check_flows(tree, whole.flows)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return tree


def canonical_of(scenario: Table) -> Table:
    """Return a stored scenario with the keys and the checks of this version.

    A class in Python is not looked for. Something built in takes its place in the checks.

    Raises
    ------
    InputError
        If the scenario is invalid. The message begins with the path of the key.
    """
    own: list[tuple[tuple[str, int | str, str], Table]] = []
    links, flows = (
        checked(scenario.get(key), kind, f"scenario.{key}")
        for key, kind in (("links", dict[str, Table]), ("flows", list[Table]))
    )
    plain = {**scenario, "links": {}, "flows": []}
    for name, link in links.items():
        plain["links"][name] = built_in(link)
        if has_class(link.get("qdisc")):
            own.append((("links", name, "qdisc"), link["qdisc"]))
    for i, flow in enumerate(flows):
        if has_class(tcp := flow.get("tcp")):
            own.append((("flows", i, "tcp"), tcp))
            flow = {**flow, "tcp": _part(tcp, {"name": "newreno"}, TCP)}
        if has_class(source := flow.get("source")):
            own.append((("flows", i, "source"), source))
            datagrams = {"name": "cbr", "rate": "1mbit"}
            flow = {**flow, "source": {"name": "bulk"} if "tcp" in flow else datagrams}
        plain["flows"].append(flow)
    changes = plain.pop("changes", None) if own else None
    try:
        whole: Table = json.loads(ParsedScenario(json.dumps(plain)).canonical())
    except InputError as error:
        raise InputError(f"scenario.{error}") from None
    for (kind, place, key), table in own:
        stored = whole[kind][place][key]
        whole[kind][place][key] = table | {k: v for k, v in stored.items() if k in COMMON}
    return whole if changes is None else {**whole, "changes": changes}


TCP = ("packet", "header", "initial_window")
"""Parameters of every TCP that readers of results use."""

COMMON = {*TCP, "limit"}


def has_class(table: Any) -> bool:
    """Return True if a part of a stored scenario is a class in Python."""
    name = table.get("name") if isinstance(table, dict) else None
    return isinstance(name, str) and ":" in name


def built_in(link: Table) -> Table:
    """Return a stored link, with drop-tail in place of a class in Python."""
    if not has_class(link.get("qdisc")):
        return link
    return {**link, "qdisc": _part(link["qdisc"], {"name": "droptail"}, ("limit",))}


def _part(table: Table, stands_in: Table, keys: tuple[str, ...]) -> Table:
    checked(table, dict[str, bool | str | int | float | list[Any] | None])
    fixed = {key: table[key] for key in keys if key in table and table[key] != "auto"}
    return stands_in | fixed


def _check_links(tree: Table) -> None:
    _same("links", list(tree["links"]), list(tree["scenario"]["links"]))
    for name, link in tree["links"].items():
        checked(link, StoredLink, f"links.{name}")
        checked(link, dict[str, Scalar], f"links.{name}")


def _check_flows(tree: Table, flows: list[StoredTcp | StoredUdp]) -> None:
    """Check that the scenario has these flows, in this order. A group may have none."""
    checked(tree["flows"], list[dict[str, Scalar]], "flows")
    there = {flow.group for flow in flows}
    groups = {flow["name"]: flow for flow in tree["scenario"]["flows"]}
    _same("flows", [flow.name for flow in flows], names_of(groups, there))
    for row, flow in zip(flows, tree["flows"], strict=True):
        group = groups.get(row.group)
        if group is None or isinstance(row, StoredTcp) != ("tcp" in group):
            raise InputError(f"flows.{row.name}: does not belong to the scenario")
        part = FIELDS.get(group["source"]["name"])
        for field in StoredFlow.__struct_fields__ if part else ():
            if str(part) in field and field not in flow:
                raise InputError(f"flows.{row.name}.{field}: is missing")


def names_of(groups: Mapping[str, Table], there: set[str]) -> list[str]:
    """Return the names of all flows of the groups `there`, in order."""
    return [
        name if flow["count"] == 1 else f"{name}.{i}"
        for name, flow in groups.items()
        if name in there
        for i in range(flow["count"])
    ]


def _same(key: str, names: list[str], expected: list[str]) -> None:
    """Raise InputError unless two lists of names are equal."""
    if names != expected:
        pairs = enumerate(zip(names, expected, strict=False))
        differ = next((i for i, (a, b) in pairs if a != b), None)
        n = min(len(names), len(expected)) if differ is None else differ
        raise InputError(f"{key}.{n}: does not belong to the scenario")
