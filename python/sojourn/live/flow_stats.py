"""What is counted of each row of a live run, and the series of rows and groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sojourn.live.sockets import Info
from sojourn.result.result import Array


class Row:
    """What is counted of a row: a flow, or a host of a crowd."""

    def __init__(self, name: str, group: str, *, tcp: bool) -> None:
        self.name, self.group, self.tcp = name, group, tcp
        self.delivered = 0
        """Payload that was received, in bytes."""
        self.delivered_before = 0
        """The same by the end of the warm-up."""
        self.timeouts: int | None = 0
        """None where the kernel does not count them."""
        self.delays_ns: list[int] = []
        """Of datagrams sent since the warm-up."""
        self.seen = 0
        """What had been delivered by the last look."""
        self.delivered_bytes: list[int] = []
        self.cwnd_packets: list[float] = []


class _Group:
    def __init__(self) -> None:
        self.cwnd_packets: list[float] = []
        self.timeouts: list[int] = []
        self.stalled_flows: list[int] = []
        self.timeouts_seen = 0


class FlowStats:
    """The rows, and what is seen of them once per sample."""

    def __init__(self, names: Sequence[tuple[str, str, bool]], scenario: Mapping[str, Any]) -> None:
        self.rows = [Row(name, group, tcp=tcp) for name, group, tcp in names]
        self._groups = {flow["name"]: _Group() for flow in scenario["flows"]}
        self._crowds = {
            flow["name"]
            for flow in scenario["flows"]
            if flow["source"]["name"] not in ("bulk", "transfers", "cbr", "onoff")
        }
        self._time_s: list[float] = []

    def _timeouts(self) -> dict[str, int]:
        """Sum the timeouts of each group."""
        total = dict.fromkeys(self._groups, 0)
        for row in self.rows:
            total[row.group] += row.timeouts or 0
        return total

    def begin(self) -> None:
        """Start counting anew; the next look sees what came since the last one all the same."""
        for name, timeouts in self._timeouts().items():
            self._groups[name].timeouts_seen -= timeouts
        for row in self.rows:
            row.delivered_before = row.delivered
            row.timeouts = None if row.timeouts is None else 0

    def look(self, time_s: float, open_ones: Sequence[tuple[Row, Info]]) -> None:
        """Look at everything; `open_ones` is what the kernel tells of the connections there are."""
        self._time_s.append(time_s)
        windows = {id(row): float(info.cwnd_packets) for row, info in open_ones}
        for row in self.rows:
            row.delivered_bytes.append(row.delivered - row.seen)
            row.seen = row.delivered
            row.cwnd_packets.append(windows.get(id(row), 0.0))
        for name, timeouts in self._timeouts().items():
            group = self._groups[name]
            infos = [info for row, info in open_ones if row.group == name]
            mean = float(np.mean([info.cwnd_packets for info in infos])) if infos else np.nan
            group.cwnd_packets.append(mean)
            group.timeouts.append(timeouts - group.timeouts_seen)
            group.timeouts_seen = timeouts
            group.stalled_flows.append(sum(info.stalled for info in infos))

    def columns(self, received: Mapping[str, Array], *, every_flow: bool) -> dict[str, Array]:
        """Return the series of groups, and of `every_flow`, as a simulation has them.

        `received` are the columns received_bytes, which the network between the hosts counts.
        """
        rows_seen = len(self._time_s)
        columns: dict[str, Array] = {"series/time_s": np.array(self._time_s)}
        for name, group in self._groups.items():
            rows = [row for row in self.rows if row.group == name]
            total = np.sum([row.delivered_bytes for row in rows], axis=0)
            columns[f"groups/{name}/delivered_bytes"] = np.asarray(total, dtype=np.uint64)
            key = f"groups/{name}/received_bytes"
            columns[key] = received[key][:rows_seen]
            if rows[0].tcp:
                columns[f"groups/{name}/cwnd_packets"] = np.array(group.cwnd_packets)
                for what in ("timeouts", "stalled_flows"):
                    values = np.array(getattr(group, what), dtype=np.uint64)
                    columns[f"groups/{name}/{what}"] = values
        for row in self.rows if every_flow else ():
            delivered = np.array(row.delivered_bytes, dtype=np.uint64)
            columns[f"flows/{row.name}/delivered_bytes"] = delivered
            key = f"flows/{row.name}/received_bytes"
            columns[key] = received[key][:rows_seen]
            if row.tcp and row.group not in self._crowds:
                columns[f"flows/{row.name}/cwnd_packets"] = np.array(row.cwnd_packets)
        return columns
