"""Replays: the same decisions as ns-2 where both define the same, and refusals with their row."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from conftest import Command
from sojourn import _sojourn

VECTORS = Path(__file__).parents[1] / "lab/vectors"
ARRIVALS = VECTORS / "queue_arrivals.csv.gz"

HEAD = "i,t_us,flow,size_B,dropped,marked,t_drop_us,t_deq_us"


def replayed(sojourn: Command, out: Path, *options: object) -> pl.DataFrame:
    """Run the command, and read what it wrote."""
    code, _, err = sojourn("replay", *options, "--out", out)
    assert code == 0, err
    return pl.read_csv(out)


@pytest.mark.parametrize(
    ("vector", "options"),
    [
        ("queue_droptail_pkt", ["--qdisc", "droptail", "--set", "limit=49p"]),
        ("queue_droptail_byte", ["--qdisc", "droptail", "--set", "limit=24999B"]),
        (
            "queue_drr",
            [
                "--qdisc",
                "drr",
                "--set",
                "limit=25kB",
                "--set",
                "quantum=250B",
                "--set",
                "drop=head",
            ],
        ),
    ],
)
def test_decisions_and_times_are_those_of_ns2(
    vector: str, options: list[str], sojourn: Command, tmp_path: Path
) -> None:
    """Every row of the output, through files and the command."""
    ours = replayed(sojourn, tmp_path / "o.csv", ARRIVALS, "--rate", "800kbit", *options)
    theirs = pl.read_csv(VECTORS / f"{vector}.csv.gz")
    assert ours.height == 8089
    assert ours.columns[:8] == HEAD.split(",")
    for column in theirs.columns:
        assert ours[column].equals(theirs[column]), column


def test_filters_by_fields_that_rows_lack_are_refused(sojourn: Command, tmp_path: Path) -> None:
    """Also in a discipline inside another one; other filters are accepted."""
    out = ["--rate", "800kbit", "--out", tmp_path / "o.csv"]
    for filters in ("filters=1(dport=443)", "children=[prio(filters=1(mark=3))]"):
        code, _, err = sojourn("replay", ARRIVALS, *out, "--qdisc", f"prio({filters})")
        assert code == 2
        assert "qdisc: has filters by protocol, ports or mark, which rows of a replay" in err
    replayed(
        sojourn, tmp_path / "o.csv", ARRIVALS, *out[:2], "--qdisc", "prio(filters=1(ecn=ect0))"
    )


def test_followed_red_has_the_average_of_ns2(sojourn: Command, tmp_path: Path) -> None:
    """With ns-2's decisions the queue is ns-2's, so that its average can be compared."""
    recorded = VECTORS / "queue_red_pkt_gentle_wait.csv.gz"
    options = ["--rate", "800kbit", "--qdisc", "red", "--follow", recorded]
    for setting in ("limit=50p", "w_q=0.02", "gentle=two_max_th", "wait=yes"):
        options += ["--set", setting]
    code, out, err = sojourn("replay", ARRIVALS, *options, "--out", tmp_path / "o.csv.gz", "--json")
    assert code == 0
    summary = json.loads(out)
    assert err.startswith(f"sojourn: {recorded}: {len(summary['divergences'])} of 8089 decisions")
    assert len(summary["divergences"]) < 60  # ns-2 takes no decision while one packet or less waits
    ours, theirs = (
        pl.read_csv(path, infer_schema_length=None) for path in (tmp_path / "o.csv.gz", recorded)
    )
    assert np.allclose(ours["avg"], theirs["ave_"], rtol=1e-5, atol=1e-9)
    agreed = ~pl.Series(ours["i"].is_in(summary["divergences"]))
    assert ours.filter(agreed)["dropped"].equals(theirs.filter(agreed)["dropped"])


def csv(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_text(text)
    return path


def test_a_shift_of_all_arrivals_changes_nothing(sojourn: Command, tmp_path: Path) -> None:
    """100.003 s later every decision and delay is the same; `--timer-phase` fixes the timers."""
    table = pl.read_csv(ARRIVALS)
    later_us = 100_003_333
    late = tmp_path / "late.csv"
    table.with_columns(pl.col("t_us") + later_us).write_csv(late)
    runs = {}
    options: list[object] = ["--rate", "800kbit", "--qdisc", "pie", "--set", "limit=50p"]
    for name, (arrivals, phase) in {
        "now": (ARRIVALS, []),
        "late": (late, []),
        "tied": (ARRIVALS, ["--timer-phase", "3.2ms"]),
        "tied late": (late, ["--timer-phase", "100.006533s"]),
    }.items():
        runs[name] = replayed(sojourn, tmp_path / "o.csv", arrivals, *options, *phase)
    times = ("t_us", "t_drop_us", "t_deq_us")
    for now, then in (("now", "late"), ("tied", "tied late")):
        for column in runs[now].columns:
            a, b = runs[now][column].to_numpy(), runs[then][column].to_numpy()
            shift = np.where(a >= 0, later_us, 0) if column in times else 0
            assert np.array_equal(a + shift, b), (then, column)
    assert runs["now"]["dropped"].sum() > 100
    assert not runs["now"]["p"].equals(runs["tied"]["p"])


def test_small_replay_by_hand(sojourn: Command, tmp_path: Path) -> None:
    """1000 B at 8 Mbit/s take 1 ms; the queue holds one packet."""
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B\n5,0,1,1000\n6,10,1,1000\n7,20,2,1000\n")
    out = tmp_path / "o.csv"
    options = [file, "--qdisc", "fifo", "--set", "limit=1p", "--rate", "8mbit", "--out", out]
    code, output, err = sojourn("replay", *options)
    assert (code, err) == (0, "")
    assert "3 packets: 2 sent, 1 dropped, 0 marked" in output
    assert out.read_text().splitlines() == [
        f"{HEAD},ecn_out",
        "5,0,1,1000,0,0,-1,0,0",
        "6,10,1,1000,0,0,-1,1000,0",
        "7,20,2,1000,1,0,20,-1,0",
    ]
    summary = json.loads(sojourn("replay", *options, "--json")[1])
    assert summary["qdisc"] == {"limit": "1p", "name": "fifo"}
    assert summary["sojourn_max_s"] == pytest.approx(990e-6)
    assert summary["dropped_packets"] == 1


def test_times_below_a_microsecond_have_three_decimals(sojourn: Command, tmp_path: Path) -> None:
    """A column of integers stays one."""
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B\n0,0,1,1000\n1,0,1,1000\n")
    out = tmp_path / "o.csv"
    sojourn("replay", file, "--qdisc", "fifo", "--rate", "7mbit", "--out", out)
    assert out.read_text().splitlines()[1:] == [
        "0,0,1,1000,0,0,-1,0.000,0",
        "1,0,1,1000,0,0,-1,1142.857,0",
    ]


def test_marks_need_the_ecn_column(sojourn: Command, tmp_path: Path) -> None:
    """The two bits: 2 is ECT(0); a packet that arrives with CE is not marked again."""
    rows = [f"{i},{i * 100},1,1500,{(2, 3, 0)[i % 3]}" for i in range(20_000)]
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B,ecn\n" + "\n".join(rows) + "\n")
    options = [file, "--qdisc", "codel", "--set", "ecn=true", "--set", "limit=1MB"]
    frame = replayed(sojourn, tmp_path / "o.csv", *options, "--rate", "119mbit")
    marked = frame.filter(marked=1)
    assert marked.height > 5
    assert set((marked["i"] % 3).to_list()) == {0}
    assert set((frame.filter(dropped=1)["i"] % 3).to_list()) <= {2}


def test_spaces_other_columns_and_order_do_not_matter(sojourn: Command, tmp_path: Path) -> None:
    """A table made by hand."""
    text = "flow, size_B,note ,t_us, i\r\n1, 1000,hello, 0.5, 0\r\n1,1000,,1.25,1\r\n"
    file = csv(tmp_path / "a.csv", text)
    frame = replayed(sojourn, tmp_path / "o.csv", file, "--qdisc", "fifo", "--rate", "8mbit")
    assert frame["t_us"].to_list() == [0.5, 1.25]
    empty = csv(tmp_path / "e.csv", "i,t_us,flow,size_B\n")
    assert replayed(
        sojourn, tmp_path / "p.csv", empty, "--qdisc", "red", "--rate", "8mbit"
    ).is_empty()


GOOD = "i,t_us,flow,size_B\n0,0,1,1000\n1,10,1,1000\n2,20,1,1000\n"

# What is replaced in a good file, by what, and what the line says.
BAD: dict[str, tuple[str, str, str]] = {
    "missing column": ("size_B", "bytes", "column size_B is missing (there are: i, t_us, flow, by"),
    "decreasing time": ("2,20", "2,5", "row 3, column t_us: 5 is before the row above"),
    "negative time": ("0,0", "0,-1", 'row 1, column t_us: "-1" is not a number'),
    "no number": ("1,10,1", "1,ten,1", 'row 2, column t_us: "ten" is not a number'),
    "NaN": ("1,10,1", "1,NaN,1", 'row 2, column t_us: "NaN" is not a number'),
    "infinite": ("1,10,1", "1,inf,1", 'row 2, column t_us: "inf" is not a number'),
    "empty cell": ("1,10,1", "1,,1", "row 2, column t_us: nothing is not a number"),
    "negative size": ("2,20,1,1000", "2,20,1,-1", 'row 3, column size_B: "-1" is not a whole'),
    "zero size": ("2,20,1,1000", "2,20,1,0", 'row 3, column size_B: "0" is not a whole'),
    "half a byte": ("2,20,1,1000", "2,20,1,0.5", 'row 3, column size_B: "0.5" is not a whole'),
    "huge size": ("2,20,1,1000", "2,20,1,5e9", 'row 3, column size_B: "5e9" is not a whole'),
    "negative flow": ("2,20,1", "2,20,-1", 'row 3, column flow: "-1" is not a whole number'),
    "short row": ("2,20,1,1000", "2,20", "row 3, column flow: nothing is not"),
    "long row": ("2,20,1,1000", "2,20,1,1000,5,6", "this is not a table: "),
    "column twice": ("t_us,flow", "flow,flow", "column flow is given twice"),
    "bad ecn": ("size_B\n0,0,1,1000", "size_B,ecn\n0,0,1,1000,4", 'row 1, column ecn: "4"'),
    "nothing": (GOOD, "", "the file is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_csv_is_refused_with_its_row(case: str, sojourn: Command, tmp_path: Path) -> None:
    """Rows count from 1 below the header."""
    old, new, part = BAD[case]
    assert old in GOOD
    file = csv(tmp_path / "a.csv", GOOD.replace(old, new, 1))
    refused(sojourn, tmp_path, [file], f"{file}: {part}")


def refused(sojourn: Command, folder: Path, options: list[Any], part: str) -> None:
    """Check a refusal: one line, exit code 2, and no output."""
    out = folder / "out.csv"
    code, output, err = sojourn("replay", "--qdisc=red", "--rate=8mbit", "--out", out, *options)
    assert (code, output, err.count("\n")) == (2, "", 1)
    assert part in err
    assert not out.exists()


def test_other_bad_input_is_refused(sojourn: Command, tmp_path: Path) -> None:
    """Wrong options, and files that are not tables."""
    good = csv(tmp_path / "a.csv", GOOD)
    raw = gzip.compress(GOOD.encode())
    damaged = tmp_path / "b.csv.gz"
    damaged.write_bytes(raw[:-12])
    binary = tmp_path / "c.csv"
    binary.write_bytes(b"i,t_us\n\xff\xfe")
    short = csv(tmp_path / "d.csv", "dropped\n0\n1\n")
    words = csv(tmp_path / "e.csv", "dropped\n0\n1\nyes\n")
    cases: list[tuple[list[Any], str]] = [
        ([tmp_path / "no.csv"], "no.csv: no such file or directory"),
        ([damaged], "this gzip file is damaged"),
        ([binary], "line 2: this is not a text file"),
        ([good, "--rate=10mbps"], '--rate: "10mbps" is ambiguous'),
        ([good, "--rate=0bit"], "--rate: 0bit"),
        ([good, "--timer-phase=3"], '--timer-phase: "3" has no unit'),
        ([good, "--timer-phase=3p"], "--timer-phase: "),
        ([good, "--qdisc=codle"], 'unknown discipline "codle", did you mean "codel"'),
        ([good, "--set", "min_ht=5p"], "--qdisc red: min_ht: unknown parameter"),
        ([good, "--set", "min_th=5"], "--qdisc red: min_th: 5 has no unit"),
        ([good, "--set", "name=red"], "--set name"),
        ([good, "--follow", short], "d.csv: 2 rows for 3 arrivals"),
        ([good, "--follow", words], 'e.csv: row 3, column dropped: "yes"'),
        ([good, "--follow", good], "column dropped is missing"),
        ([good, "--out", "/no/where.csv"], "/no/where.csv: no such file"),
    ]
    for options, part in cases:
        refused(sojourn, tmp_path, options, part)


def test_a_replay_reports_progress_and_can_be_stopped() -> None:
    """Every 16,384 arrivals; if the callback returns False it raises KeyboardInterrupt."""
    n = 50_000
    columns = (np.arange(n) * 1_000_000, np.zeros(n, np.uint32), np.full(n, 1000, np.uint32),
               np.zeros(n, np.uint8))  # fmt: skip
    message: list[tuple[float, int]] = []

    def replayed(answer: bool) -> int:
        def ask(share: float, packets: int) -> bool:
            message.append((share, packets))
            return answer

        out = _sojourn.replay(*columns, '"droptail"', "10mbit", None, None, ask)
        return len(out["dropped"])

    assert replayed(True) == n
    assert [packets for _, packets in message] == [16_384, 32_768, 49_152]
    message.clear()
    with pytest.raises(KeyboardInterrupt):
        replayed(False)
    assert message == [(16_384 / n, 16_384)]


def test_times_in_nanoseconds(sojourn: Command, tmp_path: Path) -> None:
    """`t_ns` stands in place of `t_us`; both at once, or neither, are refused."""
    ns = csv(tmp_path / "ns.csv", "i,t_ns,flow,size_B\n0,0,1,1000\n1,1500,1,1000\n")
    frame = replayed(sojourn, tmp_path / "o.csv", ns, "--rate", "8mbit", "--qdisc", "droptail")
    assert frame["t_us"].to_list() == [0.0, 1.5]
    both = csv(tmp_path / "both.csv", "i,t_us,t_ns,flow,size_B\n0,0,0,1,1000\n")
    none = csv(tmp_path / "none.csv", "i,flow,size_B\n0,1,1000\n")
    for file, message in ((both, "has both t_us and t_ns"), (none, "column t_us is missing")):
        options = ["--rate", "8mbit", "--qdisc", "droptail", "--out", tmp_path / "x.csv"]
        code, _, err = sojourn("replay", file, *options)
        assert code == 2, err
        assert message in err


def test_a_token_bucket_lets_a_burst_pass(sojourn: Command, tmp_path: Path) -> None:
    """With `--htb-burst` two packets leave at once after idle time, as under HTB of Linux."""
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B\n0,0,1,1000\n1,0,1,1000\n2,0,1,1000\n")
    options = [file, "--rate", "8mbit", "--qdisc", "droptail", "--htb-burst", "1000B"]
    frame = replayed(sojourn, tmp_path / "o.csv", *options)
    assert frame["t_deq_us"].to_list() == [0, 0, 1000]
    code, _, err = sojourn("replay", *options[:-1], "1000", "--out", tmp_path / "x.csv")
    assert code == 2
    assert "--htb-burst" in err


def test_the_generator_of_a_recording(sojourn: Command, tmp_path: Path) -> None:
    """`--rng` repeats the same numbers; what is not a generator is refused."""
    rows = "".join(f"{i},{i * 500},1,1000\n" for i in range(400))
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B\n" + rows)
    settings = ["--set", "w_q=0.2", "--set", "min_th=2p", "--set", "max_th=90p"]
    options = [file, "--rate", "8mbit", "--qdisc", "red", *settings]
    seeds = ["xorshift32:1", "xorshift32:1", "xorshift32:2"]
    one, again, other = (
        replayed(sojourn, tmp_path / f"{k}.csv", *options, "--rng", seed)["dropped"]
        for k, seed in enumerate(seeds)
    )
    assert one.equals(again)
    assert not one.equals(other)
    for rng in ("xorshift32:0", "xorshift32", "mt19937:1", "xorshift32:4294967296", "xorshift32:x"):
        code, _, err = sojourn("replay", *options, "--rng", rng, "--out", tmp_path / "x.csv")
        assert code == 2, rng
        assert f"--rng {rng}" in err


def test_the_ecn_field_that_leaves(sojourn: Command, tmp_path: Path) -> None:
    """`ecn_out` is the field of the leaving packet: the same, or 3 (CE) if it was marked."""
    rows = "".join(f"{i},{i * 500},1,1000,{i % 3}\n" for i in range(400))
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B,ecn\n" + rows)
    options = ["--rate", "8mbit", "--qdisc", "codel", "--set", "ecn=true"]
    frame = replayed(sojourn, tmp_path / "o.csv", file, *options)
    ecn = pl.read_csv(file)["ecn"]
    assert frame["marked"].sum() > 2
    same = ecn.zip_with(frame["marked"] == 0, pl.repeat(3, 400, dtype=pl.Int64, eager=True))
    assert frame["ecn_out"].equals(same)


def test_headers_are_columns(sojourn: Command, tmp_path: Path) -> None:
    """CAKE reads the DSCP, the hosts and the ACK numbers."""
    rows = "".join(f"{i},{i},1,1000,{46 if i == 5 else 0},3,7,{i}\n" for i in range(6))
    file = csv(tmp_path / "a.csv", "i,t_us,flow,size_B,dscp,sender,receiver,ack\n" + rows)
    options = ["--rate", "1gbit", "--qdisc", "cake", "--set", "bandwidth=1mbit"]
    out = tmp_path / "o.csv"
    order = replayed(sojourn, out, file, *options).sort("t_deq_us")["i"].to_list()
    assert order == [0, 5, 1, 2, 3, 4], "EF goes before the others"
    filtered = replayed(sojourn, out, file, *options, "--set", "ack_filter=aggressive")
    assert filtered["dropped"].sum() == 3, "later ACKs replace earlier ones"
    csv(file, file.read_text().replace(",46,", ",64,"))
    code, _, err = sojourn("replay", file, *options, "--out", out)
    assert code == 2
    assert 'row 6, column dscp: "64" is not a whole number from 0 to 63' in err
