"""Lists of flows of simulators of data centres: HPCC, ConWeave, Parsimon, Homa, htsim.

A flow has a sender and a receiver by number, a size in bytes and a start time. Fields are separated
by blanks; Parsimon also has lists in JSON.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.fabric import parsimon
from sojourn.fabric.lines import Lines

COLUMNS = {
    "hpcc": ("src", "dst", "class", "port", "bytes", "start"),
    "conweave": ("src", "dst", "class", "bytes", "start"),
    "parsimon": ("id", "src", "dst", "class", "port", "bytes", "start"),
    "homa": ("src", "dst", "bytes", "gap"),
}
"""Columns of each format of one flow per line. All but Homa's have the number of flows before."""

FORMATS = (*COLUMNS, "htsim")
"""Names of formats."""

FLOWS_MAX = 10_000_000
"""Largest number of flows of a list."""

START = {"hpcc": 10**9, "conweave": 10**9, "parsimon": 10**9, "homa": 10**9}
"""Nanoseconds per unit of time of each format."""


@dataclass
class FlowList:
    """Flows of a list, in order of their starts.

    Attributes
    ----------
    form : str
        Name of the format.
    src, dst : list of int
        Numbers of the hosts.
    size : list of int
        Payload, bytes.
    start_ns : list of int
        Start time.
    priority, port : list of int
        Priority group and destination port, 0 without.
    """

    form: str
    src: list[int] = field(default_factory=list)
    dst: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    port: list[int] = field(default_factory=list)

    def add(self, src: int, dst: int, size: int, start_ns: int, kind: tuple[int, int]) -> None:
        """Append a flow; `kind` is priority group and port."""
        self.src.append(src)
        self.dst.append(dst)
        self.size.append(size)
        self.start_ns.append(start_ns)
        self.priority.append(kind[0])
        self.port.append(kind[1])

    def sorted(self) -> "FlowList":
        """Return the flows in order of their starts; flows of one time keep their order."""
        order = sorted(range(len(self.src)), key=self.start_ns.__getitem__)
        columns = (self.src, self.dst, self.size, self.start_ns, self.priority, self.port)
        return FlowList(self.form, *([column[i] for i in order] for column in columns))


def read(path: Path, form: str | None = None) -> FlowList:
    """Read a list of flows.

    Parameters
    ----------
    path : Path
        The file.
    form : str, optional
        Name of the format. By default, it is found by the first lines.

    Returns
    -------
    FlowList
        The flows, sorted by start.

    Raises
    ------
    InputError
        If the file cannot be read or is no such list. The message names file and line, or the
        place in JSON.
    """
    if form is not None and form not in FORMATS:
        raise InputError(f"format: unknown format {shown(form)}{near(form, FORMATS)}")
    if form in (None, "parsimon") and parsimon.is_json(path):
        flows = _json(path)
    else:
        lines = Lines(path)
        form = form or _format(lines)
        flows = _htsim(lines) if form == "htsim" else _columns(lines, form)
    if not flows.src:
        raise InputError(f"{path}: has no flow")
    return flows.sorted()


def _json(path: Path) -> FlowList:
    """Read a list of Parsimon in JSON."""
    read = parsimon.read_flows(path)
    if len(read) > FLOWS_MAX:
        raise InputError(f"{path}: {len(read)} flows, allowed: up to {FLOWS_MAX}")
    flows = FlowList("parsimon")
    for one in read:
        flows.add(one.src, one.dst, one.size, one.start, (0, 0))
    return flows


def _format(lines: Lines) -> str:
    """Return the format of a list, by the number of columns."""
    word = next((words[0].lower() for _, words in lines if not words[0].startswith("#")), "")
    if word == "nodes":
        return "htsim"
    first = lines.rows[0][1] if lines.rows else []
    counted = len(first) == 1
    flow = lines.rows[1][1] if counted and len(lines.rows) > 1 else first
    for form, columns in COLUMNS.items():
        if len(flow) == len(columns) and counted != (form == "homa"):
            return form
    known = "; ".join(f"{form}: {' '.join(columns)}" for form, columns in COLUMNS.items())
    number = lines.rows[1 if counted and len(lines.rows) > 1 else 0][0] if lines.rows else 1
    return lines.fail(number, f"is no flow of a known list ({known}; htsim: Nodes N)")


def _columns(lines: Lines, form: str) -> FlowList:
    """Read a list of one flow per line."""
    flows, columns, rows, time = FlowList(form), COLUMNS[form], lines.rows, 0
    if form != "homa":
        if not rows or len(rows[0][1]) != 1:
            lines.fail(rows[0][0] if rows else 1, "a list begins with the number of its flows")
        count = lines.integer(rows[0][0], rows[0][1][0], "number of flows")
        if len(rows) - 1 < count:
            text = f"the list has {len(rows) - 1} flows, and its first line says {count}"
            raise InputError(f"{lines.path}: {text}")
        rows = rows[1 : count + 1]
    if len(rows) > FLOWS_MAX:
        raise InputError(f"{lines.path}: {len(rows)} flows, allowed: up to {FLOWS_MAX}")
    for number, words in rows:
        if len(words) != len(columns):
            text = f"{len(words)} fields, not {len(columns)} ({' '.join(columns)})"
            lines.fail(number, text)
        word = dict(zip(columns, words, strict=True))
        src = lines.integer(number, word["src"], "number of a host")
        dst = lines.integer(number, word["dst"], "number of a host")
        if src == dst:
            lines.fail(number, f"host {src} cannot send to itself")
        size = lines.integer(number, word["bytes"], "size in bytes", 1)
        priority = lines.integer(number, word.get("class", "0"), "priority group")
        port = lines.integer(number, word.get("port", "0"), "port")
        if priority > 65_535 or port > 65_535:
            lines.fail(number, "a priority group and a port are at most 65535")
        if form == "homa":
            time += lines.decimal(number, word["gap"], "gap in seconds", START[form])
        else:
            time = lines.decimal(number, word["start"], "start in seconds", START[form])
        flows.add(src, dst, size, time, (priority, port))
    return flows


FLOW = re.compile(r"([0-9]{1,9})->([0-9]{1,9})")
"""Hosts of a flow of htsim."""

IGNORED = ("id", "send_done_trigger", "recv_done_trigger", "prio")
"""Words of htsim that change nothing in a list without triggers."""


def _htsim(lines: Lines) -> FlowList:
    """Read a connection matrix of htsim. Start times are in picoseconds."""
    flows, count, nodes = FlowList("htsim"), None, 0
    for number, words in lines:
        first = words[0].lower()
        if first.startswith("#"):
            continue
        if first in ("nodes", "connections", "triggers", "failures"):
            if len(words) != 2:
                lines.fail(number, f"{words[0]} has one number")
            value = lines.integer(number, words[1], "number")
            if first == "nodes":
                nodes = value
            elif first == "connections":
                count = value
            elif value:
                lines.fail(number, f"{words[0]} of htsim cannot be read")
            continue
        match = FLOW.fullmatch(words[0])
        if match is None:
            lines.fail(number, f"{shown(words[0])} is no flow, like 3->5")
        src, dst = int(match[1]), int(match[2])
        if src == dst or max(src, dst) >= nodes:
            lines.fail(number, f"{words[0]}: hosts are two different numbers below {nodes} (Nodes)")
        size, start, priority = _htsim_values(lines, number, words[1:])
        flows.add(src, dst, size, start, (priority, 0))
    if count is not None and count != len(flows.src):
        text = f"the list has {len(flows.src)} flows, and Connections says {count}"
        raise InputError(f"{lines.path}: {text}")
    return flows


def _htsim_values(lines: Lines, number: int, words: list[str]) -> tuple[int, int, int]:
    """Return size, start in nanoseconds, and priority of a flow of htsim."""
    if len(words) % 2:
        lines.fail(number, f"{shown(words[-1])} has no value")
    values: dict[str, str] = {}
    for key, value in zip(words[::2], words[1::2], strict=True):
        if key == "trigger":
            lines.fail(number, "flows that a trigger starts cannot be read")
        if key not in ("start", "size", *IGNORED):
            lines.fail(number, f"unknown word {shown(key)}{near(key, ('start', 'size', *IGNORED))}")
        values[key] = value
    if "start" not in values:
        lines.fail(number, "the flow has no start")
    size = lines.integer(number, values.get("size", "0"), "size in bytes")
    if not size:
        lines.fail(number, "the flow has no size, so it has no end; give it one")
    priority = lines.integer(number, values.get("prio", "0"), "priority")
    picoseconds = lines.decimal(number, values["start"], "start in picoseconds", 1)
    return size, (picoseconds + 500) // 1000, priority


def text(flows: FlowList, form: str = "hpcc") -> str:
    """Return a list as the text of a file in one of the formats, which `read` reads.

    Times keep their nanoseconds.
    """
    if form == "htsim":
        hosts = max([*flows.src, *flows.dst]) + 1
        head = [f"Nodes {hosts}", f"Connections {len(flows.src)}"]
        rows = zip(flows.src, flows.dst, flows.start_ns, flows.size, strict=True)
        flow_lines = (f"{a}->{b} start {t}000 size {n}" for a, b, t, n in rows)
        return "\n".join([*head, *flow_lines]) + "\n"
    rows_of = zip(flows.src, flows.dst, flows.priority, flows.port, flows.size, strict=True)
    times, before = flows.start_ns, 0
    lines = [] if form == "homa" else [str(len(flows.src))]
    for i, (src, dst, priority, port, size) in enumerate(rows_of):
        values = {"id": i, "src": src, "dst": dst, "class": priority, "port": port, "bytes": size}
        seconds = {"start": times[i], "gap": times[i] - before}
        before = times[i]
        word = {**values, **{k: f"{t // 10**9}.{t % 10**9:09d}" for k, t in seconds.items()}}
        lines.append(" ".join(str(word[column]) for column in COLUMNS[form]))
    return "\n".join(lines) + "\n"
