"""Packets over a netem of the kernel, over a simulated wire, and over a live link."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sojourn import _sojourn
from sojourn_lab.validation.linux import user_mode
from sojourn_lab.validation.netem.cases import SIZE, Case

Array = npt.NDArray[np.float64]

PROBE = Path(__file__).with_name("probe.c")


@dataclass(frozen=True)
class Arrivals:
    """Numbers of packets in the order of their arrivals, their delays, and the packets sent."""

    number: npt.NDArray[np.int64]
    delay_s: Array
    sent: int
    sent_ns: tuple[int, ...] = ()
    """Times of sending, if they are known."""

    @property
    def first(self) -> npt.NDArray[np.bool_]:
        """For each arrival, whether it is the first of its packet."""
        seen = np.zeros(len(self.number), bool)
        seen[np.unique(self.number, return_index=True)[1]] = True
        return seen

    @property
    def lost(self) -> npt.NDArray[np.bool_]:
        """For each packet, whether it never arrived."""
        lost = np.ones(self.sent, bool)
        lost[self.number] = False
        return lost

    def correlation(self) -> float:
        """Return the correlation of the delays of packets that were sent one after the other."""
        of_number = dict(zip(self.number[self.first], self.delay_s[self.first], strict=True))
        pairs = [(d, of_number[n + 1]) for n, d in of_number.items() if n + 1 in of_number]
        return float(np.corrcoef(np.array(pairs).T)[0, 1])

    @property
    def duplicated(self) -> npt.NDArray[np.bool_]:
        """For each packet, whether it arrived more than once."""
        return np.bincount(self.number, minlength=self.sent) > 1

    def runs(self) -> npt.NDArray[np.int64]:
        """Return the lengths of the runs of losses."""
        return np.diff(np.flatnonzero(np.diff(np.pad(self.lost.astype(int), 1))))[::2]

    def error(self, key: str, batch: int) -> float:
        """Return the standard error of a share, from the shares in batches of packets.

        `key` is "lost" or "duplicated". Packets after the last whole batch are left out.
        """
        flags = self.lost if key == "lost" else self.duplicated
        count = self.sent // batch
        shares = flags[: count * batch].reshape(count, batch).mean(axis=1)
        return float(shares.std(ddof=1) / count**0.5)

    def figures(self) -> dict[str, float]:
        """Return what is compared: delays in ms, shares, and the mean length of runs of losses."""
        delays = self.delay_s[self.first] * 1e3
        number = self.number[self.first]
        latest = np.maximum.accumulate(number)
        runs = self.runs()
        low, middle, high = np.quantile(delays, (0.05, 0.5, 0.95))
        return {
            "mean delay, ms": float(delays.mean()),
            "standard deviation, ms": float(delays.std()),
            "5 %, ms": float(low),
            "50 %, ms": float(middle),
            "95 %, ms": float(high),
            "reordered": float((number < latest).mean()),
            "lost": float(self.lost.mean()),
            "run of losses": float(runs.mean()) if len(runs) else 0.0,
            "duplicated": float((~self.first).sum() / self.sent),
        }


def kernel(cases: Sequence[Case], packets: int, gap_us: int, folder: Path) -> list[Arrivals]:
    """Send the packets of each case over the loopback device of a kernel, behind netem."""
    return behind([case.words for case in cases], packets, gap_us, folder)


def behind(lines: Sequence[str], packets: int, gap_us: int, folder: Path) -> list[Arrivals]:
    """Send packets over the loopback device of a kernel, for each line behind a netem."""
    probe = folder / "probe"
    subprocess.run(["gcc", "-O2", "-static", "-o", probe, PROBE], check=True)
    parts = ["ip link set lo up"]
    for words in lines:
        parts += [
            f"tc qdisc add dev lo root netem {words} </dev/null",
            f"echo '== {words}'",
            f"{probe} {packets} {gap_us}",
            "tc qdisc del dev lo root",
        ]
    limit_s = 60 + len(lines) * (10 * packets * gap_us / 1e6 + 10)
    text = user_mode.run("\n".join(parts), folder, limit_s=limit_s)
    blocks = re.findall(r"^== .*\n((?:\d+ \d+ -?\d+\n)*)", text + "\n", re.MULTILINE)
    if len(blocks) != len(lines):
        raise RuntimeError(
            f"the kernel answered {len(blocks)} of {len(lines)} cases:\n{text[:500]}"
        )
    return [_read(block, packets) for block in blocks]


def _read(block: str, packets: int) -> Arrivals:
    rows = np.array([line.split() for line in block.splitlines()], dtype=np.int64)
    times = np.zeros(packets, np.int64)
    times[rows[:, 0]] = rows[:, 1]
    number, sent, arrived = rows[rows[:, 2] >= 0].T
    return Arrivals(number, (arrived - sent) / 1e9, packets, tuple(times - times[0]))


def simulated(case: Case, sent_ns: Sequence[int], seed: int = 1) -> Arrivals:
    """Send packets at these times, ascending, over the wire of the library."""
    links = json.dumps({"up": {"rate": "100gbit", **case.link}})
    times = [int(at) for at in np.maximum.accumulate(np.asarray(sent_ns))]
    columns = _sojourn.wire_arrivals(links, seed, times, SIZE)
    right = ~columns["wrong"]
    number = columns["number"][right].astype(np.int64)
    delays = (columns["t_ns"][right].astype(np.int64) - np.asarray(times)[number]) / 1e9
    return Arrivals(number, delays, len(times), tuple(times))


def live(case: Case, packets: int, gap_us: int) -> Arrivals:
    """Send pings over a live link that is impaired in one direction. Needs root."""
    options = [
        word for key, value in case.link.items() for word in ("--up", f"{key}={_toml(value)}")
    ]
    ping = ["ping", "-n", "-i", str(gap_us / 1e6), "-c", str(packets), "-W", "1"]
    command = [sys.executable, "-m", "sojourn", "link", "--rate", "1gbit", *options]
    done = subprocess.run(
        [*command, "--", *ping, "-s", str(SIZE - 28), OUTSIDE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = re.findall(r"icmp_seq=(\d+) .*time=([\d.]+) ms", done.stdout)
    if not rows:
        raise RuntimeError(done.stdout[-500:] + done.stderr[-1000:])
    number = np.array([int(seq) - 1 for seq, _ in rows])
    return Arrivals(number, np.array([float(ms) / 1e3 for _, ms in rows]), packets)


OUTSIDE = "198.18.0.1"
"""Address of the outer end of a live link."""


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) + " }"
        )
    return str(value)


def missing() -> list[str]:
    """Return what the comparison needs and is not installed."""
    lacking = user_mode.missing()
    return lacking if shutil.which("gcc") else [*lacking, "gcc"]
