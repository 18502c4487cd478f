"""Statistics of a live run per flow, and the series of flows and groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sojourn.live.sockets import Info
from sojourn.result.result import Array


class Row:
    """Statistics of a row: a flow, or a host of a source with many connections."""

    def __init__(self, name: str, group: str, *, tcp: bool) -> None:
        self.name, self.group, self.tcp = name, group, tcp
        self.delivered = 0
        """Payload received, in bytes."""
        self.delivered_before = 0
        """Payload received before the end of the warm-up, in bytes."""
        self.timeouts: int | None = 0
        """Retransmission timeouts; None if the kernel does not count them."""
        self.delays_ns: list[int] = []
        """One-way delays of datagrams sent after the warm-up."""
        self.seen = 0
        """Value of `delivered` at the last sample."""
        self.delivered_bytes: list[int] = []
        """Payload received per sample interval, in bytes."""
        self.cwnd_packets: list[float] = []
        """Congestion window at each sample; 0 without a connection."""


class _Group:
    """Series of a group, one value per sample."""

    def __init__(self) -> None:
        self.cwnd_packets: list[float] = []
        self.timeouts: list[int] = []
        self.stalled_flows: list[int] = []
        self.timeouts_seen = 0


class FlowStats:
    """Statistics of all rows, sampled at a fixed interval."""

    def __init__(self, names: Sequence[tuple[str, str, bool]], scenario: Mapping[str, Any]) -> None:
        self.rows = [Row(name, group, tcp=tcp) for name, group, tcp in names]
        self._groups = {flow["name"]: _Group() for flow in scenario["flows"]}
        self._many = {
            flow["name"]
            for flow in scenario["flows"]
            if flow["source"]["name"] not in ("bulk", "transfers", "cbr", "onoff")
        }
        self._time_s: list[float] = []

    def _timeouts(self) -> dict[str, int]:
        """Return the sum of timeouts of each group."""
        total = dict.fromkeys(self._groups, 0)
        for row in self.rows:
            total[row.group] += row.timeouts or 0
        return total

    def begin(self) -> None:
        """End the warm-up: reset the counters. The current sample interval is not affected."""
        for name, timeouts in self._timeouts().items():
            self._groups[name].timeouts_seen -= timeouts
        for row in self.rows:
            row.delivered_before = row.delivered
            row.timeouts = None if row.timeouts is None else 0

    def sample(self, time_s: float, open_ones: Sequence[tuple[Row, Info]]) -> None:
        """Record a sample; `open_ones` has the state of each open connection, with its row."""
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
        """Return the columns of the series, as in a simulation.

        Parameters
        ----------
        received
            The columns `received_bytes`, which the network between the hosts counts.
        every_flow
            True to include the series of each flow, not only of groups.
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
            if row.tcp and row.group not in self._many:
                columns[f"flows/{row.name}/cwnd_packets"] = np.array(row.cwnd_packets)
        return columns
