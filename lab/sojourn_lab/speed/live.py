"""Measure the accuracy of a live link; update the tables in docs/concepts/live-accuracy.md.

UDP packets carry the sender's time stamp; the kernel adds one at the receiver. `make bench-live`
takes some minutes.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sojourn_lab import ROOT

PAGE = ROOT / "docs/concepts/live-accuracy.md"
BEGIN, END = "<!-- measured by make bench-live -->\n", "<!-- end -->\n"

RATES_MBIT = (1, 10, 50, 100, 500, 1000, 1500, 2000)
DELAYS_MS = (0, 5, 25, 100)
FULL, SMALL = 1500, 200
"""Packet sizes in bytes, including 28 bytes of headers."""
SECONDS, SECONDS_FAST = 5.0, 2.0
"""Duration of a run; the latter from 500 Mbit/s on, to bound the memory."""
GAP_S = 0.002
"""Interval between small packets."""
HELD = 0.005
"""A rate is held if the measured rate differs by at most this share."""
FAR = "198.18.0.1"
_TIMESTAMPNS, _RCVBUFFORCE, _UDP_SEGMENT = 35, 33, 103


@dataclass
class Sink:
    """UDP socket that records when each packet was sent and received (kernel time), in ns."""

    stamps: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("", 0))
        self.socket.settimeout(0.5)
        self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        # Packets must wait for Python, not be dropped.
        self.socket.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, 1_000_000_000)
        self.port: int = self.socket.getsockname()[1]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while True:
            try:
                data, more, _, _ = self.socket.recvmsg(16, 64)
            except TimeoutError:
                if self._done.is_set():
                    return
                continue
            stamp = more[0][2]
            received = int.from_bytes(stamp[:8], sys.byteorder) * 1_000_000_000
            received += int.from_bytes(stamp[8:16], sys.byteorder)
            self.stamps.append((int.from_bytes(data[:8], "big"), received))

    def close(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Stop; return the time stamps in two columns, sent and received."""
        self._done.set()
        self._thread.join()
        self.socket.close()
        return np.array(self.stamps, dtype=np.int64).reshape(-1, 2)


def send(port: int, size: int, gap_s: float, seconds: float) -> None:
    """Send time-stamped packets of `size` bytes, one per `gap_s` on average. Runs inside.

    Full packets use UDP segmentation offload, so that the link is the bottleneck, not the sender.
    """
    together = 44 if size == FULL else 1
    gap_s *= together
    with suppress(PermissionError):  # below the link, above other processes
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((FAR, port))
        if together > 1:
            s.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, size - 28)
        rest = bytes((size - 28) * together - 8)
        start = time.monotonic()
        sent = 0
        while (now := time.monotonic() - start) < seconds:
            while sent * gap_s <= now:
                s.send(time.time_ns().to_bytes(8, "big") + rest)
                sent += 1
            time.sleep(min(0.0005, gap_s))
    time.sleep(1.2)  # wait for packets in flight


def across(
    options: list[str], size: int, gap_s: float, seconds: float = SECONDS
) -> tuple[Any, dict[str, Any]]:
    """Send packets up through a link; return their time stamps and the summary of the link."""
    sink = Sink()
    client = [sys.executable, __file__, "send", str(sink.port), str(size), str(gap_s), str(seconds)]
    line = [sys.executable, "-m", "sojourn", "link", "--json", *options, "--", *client]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=env)
    stamps = sink.close()
    if done.returncode != 0:
        sys.exit(done.stderr)
    return stamps, json.loads(done.stdout)["links"]["up"]


def of_rates() -> tuple[list[str], float]:
    """Measure rates; return the rows of the table, and the highest rate that was held."""
    rows, highest = [], 0.0
    for mbit in RATES_MBIT:
        options = ["--rate", f"{mbit}mbit", "--set", "limit=200p"]
        seconds = SECONDS if mbit < 500 else SECONDS_FAST
        stamps, up = across(options, FULL, FULL * 8 / (1.3e6 * mbit), seconds)
        if len(stamps) < up["delivered_packets"]:
            sys.exit(f"the receiver lost {up['delivered_packets'] - len(stamps)} packets")
        received = np.sort(stamps[:, 1])
        # From the second packet to the last, the link is never idle.
        busy = received[1:]
        got = (len(busy) - 1) * FULL * 8 / ((busy[-1] - busy[0]) / 1e9) / 1e6
        offered = up["arrived_bytes"] * 8 / seconds / 1e6
        error = got / mbit - 1
        if abs(error) <= HELD:
            highest = max(highest, mbit)
        gaps = np.diff(busy) / 1e3
        late = [up[f"lateness_{what}_s"] * 1e6 for what in ("p50", "p99", "max")]
        rows.append(
            f"| {mbit} | {offered:.0f} | {got:.4f} | {100 * error:+.4f} % | {gaps.std():.0f} | "
            f"{late[0]:.0f} / {late[1]:.0f} / {late[2]:.0f} | {100 * up['cpu_share']:.0f} % | "
            f"{up['kernel_dropped_packets']} |"
        )
        print(rows[-1], flush=True)
    return rows, highest


def of_delays() -> list[str]:
    """Measure delays at 100 Mbit/s; return the rows of the table."""
    rows = []
    for ms in DELAYS_MS:
        stamps, up = across(["--rate", "100mbit", "--delay", f"{ms}ms"], SMALL, GAP_S)
        due_us = ms * 1e3 + SMALL * 8 / 100
        added = (stamps[:, 1] - stamps[:, 0]) / 1e3 - due_us
        p50, p99 = np.percentile(added, [50, 99])
        rows.append(
            f"| {ms} | {len(added)} | {added.mean():.0f} | {p50:.0f} | {p99:.0f} | "
            f"{p99 - p50:.0f} | {added.max():.0f} | {up['lateness_p99_s'] * 1e6:.0f} |"
        )
        print(rows[-1], flush=True)
    return rows


def processor() -> str:
    """Return the name of the processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return "an unknown processor"


def main() -> None:
    """Measure, print the tables, and write them to the page."""
    before = os.getloadavg()[0]
    rates, highest = of_rates()
    delays = of_delays()
    after = os.getloadavg()[0]
    text = f"""\
{os.cpu_count()} cores of {processor()}, Linux {os.uname().release}; load average
{before:.1f} before and {after:.1f} after (these runs alone: about 2).

| rate set, Mbit/s | offered | measured | error | gaps between packets, standard deviation, us | \
lateness, 50 % / 99 % / max, us | CPU | kernel drops |
|---|---|---|---|---|---|---|---|
{chr(10).join(rates)}

The highest of these rates with an error below {100 * HELD} % is {highest:.0f} Mbit/s.

| delay set, ms | packets | added delay, mean, us | 50 % | 99 % | 99 % - 50 % | max | \
lateness, 99 % |
|---|---|---|---|---|---|---|---|
{chr(10).join(delays)}
"""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
