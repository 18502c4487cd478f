"""Pack recordings of Linux qdiscs into lab/vectors/linux.

Usage: python -m sojourn_lab.validation.linux.pack FOLDER [NAME...], where FOLDER holds NAME.csv.gz
with the columns
`t_in_ns,flow,len,ecn_in,fate,t_out_ns` (or `t_ns,flow,size_B,ecn,fate,t_out_ns`), and optionally
NAME.mon.csv.gz with `t_ns,prob`, or a column `p`, read after each arrival. The packed form is
described in lab/vectors/README-linux.md. Without names, FOLDER/closed.csv is packed: runs of TCP.
"""

import csv
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sojourn_lab.validation.linux.recordings import (
    DROPPED,
    MARKED,
    SENT,
    VECTORS,
    Recording,
    store,
    write,
)

FATES = {"sent": SENT, "mark": MARKED, "drop": DROPPED}


def rows(path: Path) -> list[dict[str, str]]:
    """Read a gzipped CSV file."""
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(file))


def packed(listed: list[dict[str, str]]) -> Recording:
    """Return a recording from its rows."""
    names = (("t_in_ns", "t_ns"), ("flow",), ("len", "size_B"), ("ecn_in", "ecn"), ("t_out_ns",))
    columns = [
        [int(next(row[n] for n in name if n in row) or -1) for row in listed] for name in names
    ]
    t_ns, flow, size, ecn, out_ns = map(np.array, columns)
    return Recording(
        t_ns, flow, size, ecn, np.array([FATES[row["fate"]] for row in listed]), out_ns
    )


def probabilities(samples: list[dict[str, str]]) -> Iterator[str]:
    """Yield the samples at which the probability has changed, as 32-bit fixed point."""
    yield "t_ns,p"
    last = 0
    for row in samples:
        p = round(float(row.get("prob") or row["p"]) * 0xFFFF_FFFF)
        if p != last:
            yield f"{row['t_ns']},{p}"
            last = p


COLUMNS = (
    "name tc rate_mbit rtt_ms secs warm_s A_n A_cc B_n B_cc A_goodput_mean B_goodput_mean"
    " delay_L_mean_ms delay_L_p99_ms delay_C_mean_ms delay_C_p99_ms L_pkts C_pkts mark_prob_L"
    " signal_prob_C"
).split()
"""Columns of a run of TCP that are kept as they are."""


def runs_of_tcp(runs: list[dict[str, str]]) -> Iterator[str]:
    """Yield the runs: settings, goodputs, delays, shares of marks, and all drops and marks."""
    yield ",".join((*COLUMNS, "drops", "marks"))
    for run in runs:
        totals = [str(int(run[f"L_{what}"]) + int(run[f"C_{what}"])) for what in ("drops", "marks")]
        yield ",".join([*(run[key] for key in COLUMNS), *totals])


def main() -> None:
    """Pack the recordings."""
    folder, *names = sys.argv[1:]
    VECTORS.mkdir(parents=True, exist_ok=True)
    if not names:
        with (Path(folder) / "closed.csv").open() as file:
            lines = runs_of_tcp(list(csv.DictReader(file)))
            (VECTORS / "senders.csv").write_text("\n".join(lines) + "\n")
    for name in names:
        recording = rows(Path(folder) / f"{name}.csv.gz")
        store(name, packed(recording))
        monitor = Path(folder) / f"{name}.mon.csv.gz"
        if monitor.exists():
            write(VECTORS / f"{name}.p.csv.gz", probabilities(rows(monitor)))
        elif "p" in recording[0]:
            write(VECTORS / f"{name}.p.csv.gz", probabilities(recording))


if __name__ == "__main__":
    main()
