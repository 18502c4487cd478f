"""Disciplines and links in a program of Python: packets, times, bodies, and messages."""

import gc
import json
import subprocess
import sys
import weakref
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sojourn as sj
from sojourn import _sojourn
from sojourn.embed import Qdisc, QueuedPacket, TimedLink
from sojourn.engines.replay import replay
from support.pages import blocks

MS = 1_000_000

T = TypeVar("T")

DISCIPLINES = [spec["name"] for spec in json.loads(_sojourn.specs())["disciplines"]]
"""All disciplines."""


class Body:
    """Body that a weak reference can watch."""


def polled(link: TimedLink[T], now_ns: int) -> list[QueuedPacket[T]]:
    """Poll until nothing has arrived."""
    packets = []
    while (packet := link.poll(now_ns)) is not None:
        packets.append(packet)
    return packets


def drained(queue: Qdisc[Any], now_ns: int) -> list[QueuedPacket[Any]]:
    """Dequeue all packets, each at the time that a shaper asks for."""
    packets = []
    while len(queue):
        packet = queue.dequeue(now_ns)
        if packet is None and len(queue):
            assert queue.ready_at_ns is not None
            assert queue.ready_at_ns >= now_ns
            now_ns = max(queue.ready_at_ns, now_ns + 1)
        elif packet is not None:
            packets.append(packet)
    return packets


packet = st.fixed_dictionaries({
    "size": st.integers(1, 9000),
    "flow": st.integers(0, 3),
    "flow_hash": st.integers(0, 2**32 - 1),
    "class_": st.integers(0, 3),
    "ecn": st.integers(0, 3),
    "source": st.integers(0, 2**32 - 1),
})  # fmt: skip
step = st.tuples(st.integers(0, 20 * MS), st.none() | packet)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(DISCIPLINES), seed=st.integers(0, 2**64 - 1), steps=st.lists(step))
def test_every_body_comes_back_once(name: str, seed: int, steps: list[Any]) -> None:
    """It is dequeued or dropped; the counters agree, and nothing is left."""
    queue: Qdisc[int] = Qdisc(name, rate="2mbit", seed=seed, keep_dropped=True)
    now, sent, marked = 0, 0, 0
    returned: Counter[int] = Counter()
    dropped: list[QueuedPacket[int]] = []
    for gap, fields in steps:
        now += gap
        if fields is not None:
            queue.enqueue(now, sent, **fields)
            sent += 1
        elif (one := queue.dequeue(now)) is not None:
            assert one.at_ns == now
            assert one.arrived_ns <= now
            assert one.reason is None
            returned[one.body] += 1
            marked += one.ecn == 3
        dropped += iter(queue.next_dropped, None)
    assert queue.stats()["queue_packets"] == len(queue) == queue.backlog[0]
    returned.update(one.body for one in drained(queue, now))
    dropped += iter(queue.next_dropped, None)
    assert {one.reason for one in dropped} <= {"full", "at_enqueue", "after_enqueue"}
    returned.update(one.body for one in dropped)
    assert returned == Counter(range(sent))
    stats = queue.stats()
    assert stats["arrived_packets"] == sent
    assert stats["dropped_packets"] == len(dropped)
    assert stats["departed_packets"] == sent - len(dropped)
    assert queue.backlog == (0, 0)


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(["droptail", "codel", "fq_codel", "cake", "pie", "dualpi2", "red"]),
    loss=st.sampled_from(["0", "10%"]),
    jitter=st.sampled_from([None, "3ms"]),
    steps=st.lists(st.tuples(st.integers(0, 3 * MS), packet), min_size=1),
    late=st.integers(1, 50 * MS),
)
def test_a_late_poll_changes_nothing(
    name: str, loss: str, jitter: str | None, steps: list[Any], late: int
) -> None:
    """A link that is polled when it asks for it, and one that is polled now and then."""
    impairments = {"loss": loss} | ({"jitter": jitter} if jitter else {})

    def fates(poll_late: bool) -> list[tuple[Any, ...]]:
        link: TimedLink[int] = TimedLink(
            name, rate="3mbit", delay="5ms", seed=7, keep_undelivered=True, **impairments
        )
        all_fates: list[tuple[Any, ...]] = []

        def poll(now: int) -> None:
            packets = [*polled(link, now), *iter(link.next_undelivered, None)]
            all_fates.extend((p.at_ns, p.body, p.ecn, p.reason) for p in packets)

        now = 0
        for n, (gap, fields) in enumerate(steps):
            now += gap
            while not poll_late and (at := link.next_poll_ns) is not None and at < now:
                poll(at)
            link.push(now, n, **fields)
        while (at := link.next_poll_ns) is not None:
            poll(at + (late if poll_late else 0))
        assert len(link) == 0
        return sorted(all_fates)

    assert fates(False) == fates(True)


@pytest.mark.parametrize("name", ["droptail", "codel", "fq_codel", "drr", "sfq"])
def test_decisions_are_those_of_the_replay(name: str, tmp_path: Path) -> None:
    """The same arrivals at the same rate: equal drops and equal times of transmission."""
    times = [n * MS // 2 * (3 if n % 7 == 0 else 1) for n in range(3000)]
    arrivals = sorted((t, n % 3, 300 + 97 * n % 1200) for n, t in enumerate(times))
    table = {"name": name, "limit": "40p" if name == "sfq" else "60kB"}
    rows = [f"{i},{t},{flow},{size}\n" for i, (t, flow, size) in enumerate(arrivals)]
    file = tmp_path / "arrivals.csv"
    file.write_text("i,t_ns,flow,size_B\n" + "".join(rows))
    if name in ("fq_codel", "sfq"):
        arrivals = [(t, 0, size) for t, _, size in arrivals]  # one queue, whatever the hash
        file.write_text("i,t_ns,flow,size_B\n" + "".join(
            f"{i},{t},0,{size}\n" for i, (t, _, size) in enumerate(arrivals)
        ))  # fmt: skip
    expected = replay(file, table, "10mbit")
    link: TimedLink[int] = TimedLink(table, rate="10mbit", keep_undelivered=True)
    arrived: dict[int, int] = {}
    for i, (t, flow, size) in enumerate(arrivals):
        arrived.update((p.body, p.at_ns) for p in polled(link, t))
        link.push(t, i, size=size, flow=flow)
    while (at := link.next_poll_ns) is not None:
        arrived.update((p.body, p.at_ns) for p in polled(link, at))
    lost = {p.body for p in iter(link.next_undelivered, None)}
    columns = expected.columns
    assert lost == {i for i, dropped in enumerate(columns["dropped"]) if dropped}
    assert 0 < len(lost) < len(arrivals) / 2
    for i, start_us in enumerate(columns["t_deq_us"]):
        sending_us = arrivals[i][2] * 8 / 10
        assert i in lost or abs(arrived[i] / 1000 - start_us - sending_us) <= 1


def test_equal_seeds_give_equal_packets_and_other_seeds_others() -> None:
    """Random numbers of the discipline and of the impairments."""

    def run(seed: int) -> list[tuple[int, int]]:
        link: TimedLink[int] = TimedLink(
            "red", rate="1mbit", delay="1ms", seed=seed, loss="5%", duplicate="5%", reorder="5%"
        )
        for n in range(300):
            link.push(n * 9 * MS, n, size=1250)
        packets: list[tuple[int, int]] = []
        while (at := link.next_poll_ns) is not None:
            packets += [(p.body, p.at_ns) for p in polled(link, at)]
        return packets

    assert run(1) == run(1) != run(2)
    assert max(Counter(body for body, _ in run(1)).values()) == 2, "a duplicate"


def test_a_link_without_limit_holds_a_quarter_of_a_second() -> None:
    """As in Rust and C; a given limit is kept."""
    for qdisc, packets in {"droptail": 208, "droptail(limit=500p)": 500}.items():
        link: TimedLink[None] = TimedLink(qdisc, rate="10mbit")
        for _ in range(1000):
            link.push(0, None, size=1500)
        assert len(link) == packets + 1, "and one in transmission"


def test_bodies_of_dropped_packets_are_freed() -> None:
    """At once, unless they are kept; and those on the link with it."""
    link: TimedLink[Body] = TimedLink("droptail(limit=1p)", rate="1mbit")
    bodies = [Body() for _ in range(4)]
    seen = [weakref.ref(body) for body in bodies]
    while bodies:
        link.push(0, bodies.pop(0), size=1250)
    assert [ref() is not None for ref in seen] == [True, True, False, False]
    del link
    assert not any(ref() for ref in seen)


@pytest.mark.parametrize("kind", [Qdisc, TimedLink])
def test_a_cycle_through_a_body_is_collected(kind: Any) -> None:
    """A body that refers to its queue, queued or dropped and kept."""
    keeps = {"keep_dropped" if kind is Qdisc else "keep_undelivered": True}
    queue = kind("droptail(limit=1p)", rate="1mbit", **keeps)
    seen = []
    for _ in range(4):
        body = Body()
        body.queue = queue  # type: ignore[attr-defined]
        (queue.enqueue if kind is Qdisc else queue.push)(0, body, size=1250)
        seen.append(weakref.ref(body))
    del queue, body
    gc.collect()
    assert not any(ref() for ref in seen)


def test_a_link_is_changed_and_measured() -> None:
    """Rate, delay and parameters; the counters start again."""
    link: TimedLink[str] = TimedLink(sj.CoDel(target="5ms"), rate="10mbit", delay="1ms")
    link.push(0, "slow", size=1250)
    assert link.next_poll_ns == 2 * MS
    link.change(2 * MS, rate="1mbit")
    assert (one := link.poll(2 * MS)) is not None
    assert one.body == "slow"
    link.push(2 * MS, "slower", size=1250)
    assert link.next_poll_ns == 13 * MS
    link.change(13 * MS, delay="0s")
    link.reconfigure(13 * MS, "codel(target=20ms)")
    assert link.poll(13 * MS) is not None
    link.push(13 * MS, "no delay", size=1250, ecn=2, class_=3, flow=4, flow_hash=5)
    (one,) = iter(lambda: link.poll(23 * MS), None)
    assert (one.at_ns, one.size, one.ecn, one.class_) == (23 * MS, 1250, 2, 3)
    assert (one.flow, one.flow_hash, one.wrong_bit, one.reason) == (4, 5, None, None)
    stats = link.stats()
    assert stats["departed_packets"] == 3
    assert stats["sojourn_p99_s"] == 0
    assert stats["utilisation"] == pytest.approx(21 / 23)
    link.reset_stats(23 * MS)
    assert link.stats()["departed_packets"] == 0
    assert "drop_next" in link.inspect()


def test_words_of_tc_and_tables_are_disciplines() -> None:
    """The notations of a scenario; a representation shows the name."""
    for qdisc in ("tc: fq_codel limit 100", {"name": "fq_codel"}, sj.FqCoDel(), "fq_codel"):
        assert repr(Qdisc(qdisc, rate="1mbit")) == "<Qdisc fq_codel: 0 packets, 0 bytes>"
        assert repr(TimedLink(qdisc, rate="1mbit")) == "<TimedLink fq_codel: 0 packets>"
    queue: Qdisc[str] = Qdisc("codel", rate="1mbit")
    queue.enqueue(5, "body", size=9, ecn=1)
    assert repr(queue.dequeue(7)) == (
        "QueuedPacket(body='body', size=9, ecn=1, arrived_ns=5, at_ns=7)"
    )


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"qdisc": "codle"}, 'qdisc.name: unknown discipline "codle", did you mean "codel"?'),
    ({"qdisc": "codel(target=5)"}, 'qdisc.target: "5" has no unit; a duration is written like'),
    ({"qdisc": 3}, "qdisc: 3 is not a name, NAME(KEY=VALUE, ...), a table or a model"),
    ({"rate": 10}, "rate: 10 has no unit"),
    ({"seed": -1}, "seed: -1 is not allowed: a whole number from 0 to 18446744073709551615"),
    ({"loss": 2}, "loss: 2 is out of range, allowed: 0 to 1"),
    ({"losses": "1%"}, 'losses: unknown key "losses", did you mean "loss"?'),
    ({"burst": "1kB"}, "burst: is not available in an embedded link"),
    ({"jitter": object}, "jitter: object is a class, write an object of it: object()"),
]


@pytest.mark.parametrize(("keys", "message"), REFUSED, ids=[text[:20] for _, text in REFUSED])
def test_bad_links_are_refused(keys: dict[str, Any], message: str) -> None:
    """The message begins with the parameter."""
    with pytest.raises(sj.InputError) as error:
        TimedLink(**({"qdisc": "codel", "rate": "1mbit"} | keys))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("kind", [Qdisc, TimedLink])
def test_bad_packets_are_refused_and_change_nothing(kind: Any) -> None:
    """Numbers out of range, other types, and a time that goes back."""
    queue = kind("codel", rate="1mbit")
    push = queue.enqueue if kind is Qdisc else queue.push
    for fields, message in (
        ({"size": 2**30}, "size: 1073741824 is not allowed: a whole number from 0 to 1073741823"),
        ({"size": 1.5}, "size: 1.5 is not allowed: a whole number from 0 to 1073741823"),
        ({"size": "9" * 99}, "size: '999"),
        ({"ecn": 4}, "ecn: 4 is not allowed: a whole number from 0 to 3"),
        ({"flow_hash": -1}, "flow_hash: -1 is not allowed: a whole number from 0 to 4294967295"),
        ({"now_ns": 0.5}, "now_ns: 0.5 is not allowed: a whole number from 0 to 184467440737095"),
    ):
        with pytest.raises(sj.InputError) as error:
            push(**({"now_ns": 0, "body": None, "size": 9} | fields))
        assert str(error.value).startswith(message)
        assert len(str(error.value)) < 150
    push(10, "a", size=9)
    with pytest.raises(sj.InputError, match="now_ns: 9 ns is earlier than the last call at 10 ns"):
        push(9, "b", size=9)
    assert len(queue) == 1
    with pytest.raises(sj.InputError, match="qdisc: the discipline cannot take these parameters"):
        queue.reconfigure(*(() if kind is Qdisc else (10,)), "pie")


def offered(link: TimedLink[Any], first: int, last: int, body: Any = None) -> list[str]:
    """Push packets at twice the rate, and return what comes out."""
    fates = []
    for n in range(first, last):
        one = body(n) if body else n.to_bytes(2, "big") * 3
        link.push(n * MS // 2, one, size=1250, flow_hash=n % 3, ecn=n % 4)
        packets = polled(link, n * MS // 2)
        if n % 8 == 0:  # some stay for the snapshot
            packets += iter(link.next_undelivered, None)
        fates += [repr(packet) for packet in packets]
    return fates


@pytest.mark.parametrize("name", DISCIPLINES)
def test_a_link_of_a_snapshot_continues_in_the_same_way(name: str) -> None:
    """With impairments, after changes, and with packets that nobody has taken."""
    link: TimedLink[bytes] = TimedLink(
        name, rate="10mbit", delay="20ms", seed=3, keep_undelivered=True, loss="5%", jitter="3ms",
        reorder="5%", duplicate="5%", corrupt="5%",
    )  # fmt: skip
    offered(link, 0, 200)
    link.change(100 * MS, rate="8mbit")
    snapshot = link.snapshot()
    assert link.snapshot() == snapshot, "a snapshot changes nothing"
    other: TimedLink[bytes] = TimedLink.from_snapshot(snapshot)
    assert repr(other) == repr(link) == f"<TimedLink {name}: {len(link)} packets>"
    assert other.next_poll_ns == link.next_poll_ns
    fates = offered(other, 200, 400)
    assert fates == offered(link, 200, 400)
    assert any('reason="lost"' in fate for fate in fates)
    assert other.stats() == link.stats()
    assert other.snapshot() == link.snapshot()


def test_functions_convert_bodies_of_a_snapshot() -> None:
    """Also of dropped packets; the link itself keeps its bodies."""
    link: TimedLink[Any] = TimedLink(
        "droptail(limit=3p)", rate="10mbit", delay="5ms", keep_undelivered=True
    )
    for n in range(6):
        link.push(0, {"n": n}, size=1250)
    snapshot = link.snapshot(lambda body: json.dumps(body).encode())
    other: TimedLink[Any] = TimedLink.from_snapshot(snapshot, json.loads)
    raw: TimedLink[bytes] = TimedLink.from_snapshot(snapshot)
    for one in (link, other):
        assert [p.body["n"] for p in polled(one, 50 * MS)] == [0, 1, 2, 3]
        assert [p.body["n"] for p in iter(one.next_undelivered, None)] == [4, 5]
    assert polled(raw, 50 * MS)[0].body == b'{"n": 0}'


def test_a_link_continues_in_another_process(tmp_path: Path) -> None:
    """The other process has only the bytes."""
    link: TimedLink[bytes] = TimedLink(
        "fq_codel(flows=8)", rate="10mbit", delay="9ms", keep_undelivered=True, loss="5%"
    )
    offered(link, 0, 100)
    (tmp_path / "link").write_bytes(link.snapshot())
    script = (
        "import sys; from pathlib import Path; from sojourn import TimedLink; import test_embed\n"
        "link = TimedLink.from_snapshot(Path(sys.argv[1]).read_bytes())\n"
        "print(test_embed.offered(link, 100, 200))\n"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "link")]
    tests = str(Path(__file__).parent)
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tests)
    assert done.stdout.strip() == str(offered(link, 100, 200))


def test_other_bytes_than_snapshots_of_links_are_refused(tmp_path: Path) -> None:
    """Damaged, cut and foreign ones, and bodies that are not bytes."""
    link: TimedLink[Any] = TimedLink("codel", rate="10mbit")
    link.push(0, b"body", size=1250)
    snapshot = link.snapshot()
    for k in range(len(snapshot)):
        for wrong in (snapshot[:k], snapshot[:k] + bytes([snapshot[k] ^ 4]) + snapshot[k + 1 :]):
            with pytest.raises(sj.InputError, match=r"^snapshot: "):
                TimedLink.from_snapshot(wrong)
    case = {
        "duration": "1s",
        "links": {"up": {"rate": "1mbit"}},
        "flows": [{"name": "f", "path": ["up"]}],
    }
    of_simulation = sj.Simulation(case).snapshot()
    with pytest.raises(sj.InputError, match="snapshot: is of a simulation, not of a timed link"):
        TimedLink.from_snapshot(of_simulation)
    with pytest.raises(sj.InputError, match='snapshot: "text" is not bytes'):
        TimedLink.from_snapshot("text")  # type: ignore[arg-type]
    (tmp_path / "link").write_bytes(snapshot)
    with pytest.raises(sj.InputError, match="is of a timed link, not of a simulation"):
        sj.Simulation.load(tmp_path / "link")
    link.push(0, ["list"], size=1250)
    refusal = r"body: \['list'\] is not of the type bytes; give dumps, which converts it"
    with pytest.raises(sj.InputError, match=refusal):
        link.snapshot()
    with pytest.raises(sj.InputError, match="dumps: 'list' is not of the type bytes"):
        link.snapshot(lambda body: "list" if body == ["list"] else body)  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        link.snapshot(lambda body: bytes(1 // 0))
    assert len(link) == 2


def test_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of docs/how-to/embed.md in Python."""
    code = blocks("python", "docs/how-to/embed.md")
    assert len(code) == 3
    for block in code:
        exec(compile(block, "embed.md", "exec"), {})
    assert "{'any': 'object'} 24403111 2" in capsys.readouterr().out
