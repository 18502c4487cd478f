"""Snapshots of simulations: saved here, continued in another process, and refused."""

import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from sojourn._sojourn import InputError

CASE = {
    "duration": "6s",
    "warmup": "1s",
    "sample": "100ms",
    "packet_log": True,
    "links": {"up": {"rate": "5mbit", "delay": "5ms", "qdisc": "fq_pie"}},
    "flows": [
        {"name": "bulk", "count": 2, "path": ["up"], "rtt": "30ms", "tcp": "cubic"},
        {"name": "web", "count": 3, "path": ["up"], "rtt": "20ms", "source": "web"},
    ],
}

CONTINUE = """
import sys, sojourn as sj
sj.Simulation.load(sys.argv[1]).run().save(sys.argv[2])
"""


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_another_process_continues_to_the_same_bytes(tmp_path: Path) -> None:
    """A loaded simulation has the result of the original, with a change by hand."""
    sim = sj.Simulation(CASE)
    sim.run_until("2500ms")
    sim.set("up.rate", "4mbit")
    sim.save(tmp_path / "warm")
    arguments = [tmp_path / "warm", tmp_path / "theirs"]
    subprocess.run([sys.executable, "-c", CONTINUE, *map(str, arguments)], check=True)
    sim.run().save(tmp_path / "ours")
    ours, theirs = files(tmp_path / "ours"), files(tmp_path / "theirs")
    assert len(ours) > 1
    assert ours == theirs


def test_a_loaded_simulation_can_be_looked_at_changed_and_forked(tmp_path: Path) -> None:
    """A loaded simulation does what the original does."""
    sim = sj.Simulation(CASE)
    sim.run_until("3s")
    sim.save(tmp_path / "warm")
    again = sj.Simulation.load(tmp_path / "warm", threads=1)
    assert (again.now, again.end) == (3.0, 6.0)
    assert again.scenario == sim.scenario
    assert dict(again.links["up"]) == dict(sim.links["up"])
    assert dict(again.flows["bulk"]) == dict(sim.flows["bulk"])
    for one in (sim, again):
        one.change(links={"up": {"delay": "9ms"}}, leave="web")
    assert again.fork().run().summary == sim.run().summary


class Deep(sj.Aqm):
    """Drop behind a moving mean of the last queue lengths."""

    limit_bytes: sj.Bytes = "20kB"

    def start(self) -> None:
        """Set the state."""
        self.last = deque([0.0], maxlen=5)
        self.table = np.arange(4, dtype=np.float32)
        self.seen = {"most": 0, (1, 2): [True, None, float("inf")]}

    def on_enqueue(self, packet: Any, queue: Any) -> int:
        """Decide."""
        self.last.append(queue.bytes / 3 + float(self.table[1]))
        self.seen["most"] = max(self.seen["most"], queue.bytes)
        return sj.DROP if sum(self.last) / 5 * 3 > self.limit_bytes else sj.PASS


class Keeps(sj.Aqm):
    """Keep an object that cannot be saved."""

    def start(self) -> None:
        """Set the state."""
        self.path = Path("x")

    def on_enqueue(self, packet: Any, queue: Any) -> int:
        """Decide."""
        return sj.PASS


class Shares(sj.Aqm):
    """Keep a list twice."""

    def start(self) -> None:
        """Set the state."""
        self.one = [1]
        self.two = (self.one, 3)

    def on_enqueue(self, packet: Any, queue: Any) -> int:
        """Decide."""
        return sj.PASS


class Third(sj.CongestionControl):
    """Reduce the window to two thirds."""

    def start(self) -> None:
        """Set the state."""
        self.losses = 0

    def on_ack(self, tcp: Any) -> None:
        """Grow."""
        tcp.cwnd += tcp.mss * tcp.acked // tcp.cwnd + 1 + self.losses % 2

    def on_loss(self, tcp: Any) -> None:
        """Reduce."""
        self.losses += 1
        tcp.ssthresh = max(2 * tcp.flight // 3, 2 * tcp.mss)


class Bursts(sj.TrafficSource):
    """Send three packets every 50 ms."""

    def start(self) -> None:
        """Set the state."""
        self.sent = 0

    def next_arrival(self, flow: Any) -> tuple[int, int]:
        """Return the next packet."""
        self.sent += 1
        return flow.now + (50_000_000 if self.sent % 3 == 0 else 0), 500


def of_classes(**options: bool) -> sj.Scenario:
    """Return a scenario of classes in Python."""
    return sj.Scenario(
        duration="4s",
        links={"up": sj.Link(rate="5mbit", qdisc=Deep() if not options else "codel")},
        flows=[
            sj.Flow(name="own", path=["up"], rtt="30ms", tcp=Third(**options)),
            sj.Flow(name="bursts", path=["up"], source=Bursts(**options)),
        ],
    )


@pytest.mark.parametrize("options", [{}, {"compiled": True}])
def test_classes_in_python_continue(tmp_path: Path, options: dict[str, bool]) -> None:
    """Attributes of objects, and the state of compiled code, are in the file."""
    if options:
        pytest.importorskip("numba")
    whole = sj.simulate(of_classes(**options))
    sim = sj.Simulation(of_classes(**options))
    for until in ("700ms", "2s"):
        sim.run_until(until)
        sim.save(tmp_path / "warm")
        sim = sj.Simulation.load(tmp_path / "warm", trust=True)
    assert sim.run().summary == whole.summary


@pytest.mark.parametrize(
    ("qdisc", "message"),
    [
        (Keeps(), r"links.up.qdisc: Keeps.path is a .*Path"),
        (Shares(), r"links.up.qdisc: Shares.two has a part that is also elsewhere"),
    ],
)
def test_an_attribute_that_cannot_be_saved_is_named(
    tmp_path: Path, qdisc: sj.Aqm, message: str
) -> None:
    """The message has the link, the class and the attribute."""
    link = sj.Link(rate="5mbit", qdisc=qdisc)
    flow = sj.Flow(name="own", path=["up"], rtt="30ms")
    sim = sj.Simulation(sj.Scenario(duration="4s", links={"up": link}, flows=[flow]))
    with pytest.raises(InputError, match=message):
        sim.save(tmp_path / "warm")
    assert not (tmp_path / "warm").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A damaged file, one of another version, and no snapshot at all."""
    sim = sj.Simulation(CASE)
    sim.run_until("1s")
    sim.save(tmp_path / "warm")
    good = (tmp_path / "warm").read_bytes()
    damaged = bytearray(good)
    damaged[len(good) // 2] ^= 1
    for contents, message in [
        (b"", "is not a snapshot of sojourn"),
        (good[:-9], "is damaged or incomplete"),
        (bytes(damaged), "is damaged or incomplete"),
        (good[:8] + b"\x07" + good[9:], "has format 7; this version reads format 1"),
    ]:
        path = tmp_path / "other"
        path.write_bytes(contents)
        with pytest.raises(InputError, match=f"^{path}: snapshot: {message}"):
            sj.Simulation.load(path)
    with pytest.raises(InputError, match="nothing"):
        sj.Simulation.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="is a directory"):
        sim.save(tmp_path)


def test_code_that_a_snapshot_names_needs_trust(tmp_path: Path) -> None:
    """Loading runs no code that only the file names."""
    (tmp_path / "mine.py").write_text(
        "import sojourn as sj\n"
        "class Mine(sj.Aqm):\n"
        "    def on_enqueue(self, packet, queue):\n"
        "        return sj.PASS\n"
    )
    code = (
        "import sys, sojourn as sj\n"
        "link = {'rate': '5mbit', 'qdisc': 'mine.py:Mine'}\n"
        "flow = {'name': 'f', 'path': ['up'], 'rtt': '30ms'}\n"
        "sim = sj.Simulation({'duration': '1s', 'links': {'up': link}, 'flows': [flow]})\n"
        "sim.save('warm')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    load = "import sojourn as sj; sj.Simulation.load('warm', trust={}).run()"
    run = [sys.executable, "-c"]
    done = subprocess.run(
        [*run, load.format(False)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "warm: " in done.stderr
    assert "is Python code that warm names" in done.stderr
    subprocess.run([*run, load.format(True)], cwd=tmp_path, check=True)
