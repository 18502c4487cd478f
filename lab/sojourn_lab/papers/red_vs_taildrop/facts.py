"""Measured texts of the findings that are not parts of claims."""

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl

from sojourn_lab.papers.red_vs_taildrop.rules import NS2
from sojourn_lab.papers.red_vs_taildrop.rules_web import max_p
from sojourn_lab.papers.red_vs_taildrop.runs import FTPS, NAMES, SESSIONS
from sojourn_lab.papers.red_vs_taildrop.settings import payload
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.parts import short
from sojourn_lab.reproduction.side_by_side import largest_difference, ratio_text


def runs_by_spacing(runs: Runs) -> str:
    """Return REDstd's mean run with 256 FTPs for the three spacings of drops."""
    here = {"q": "red", "flows": 256}
    no, yes = (mean(runs["spacing"], "run_mean", wait=wait, **here) for wait in ("no", "yes"))
    own = mean(runs["ftp"], "run_mean", **here)
    return (
        f"{short(no)} with Floyd and Jacobson's spacing, {short(own)} with independent drops and "
        f"{short(yes)} with ns-2's"
    )


def near_ns2(runs: Runs) -> str:
    """Return the largest differences from ns-2 in mean delay and mean run of losses."""
    delays, lengths = [], []
    for (q, n), (_, delay_ms, _, length) in NS2.items():
        ours = mean(runs["ns-2"], "delay_s", q=q, flows=n) * 1e3
        delays.append(abs(ours / delay_ms - 1))
        lengths.append(abs(mean(runs["ns-2"], "run_mean", q=q, flows=n) / length - 1))
    return (
        f"mean delays differ by at most {short(100 * max(delays))} %, mean runs by at most "
        f"{short(100 * max(lengths))} %"
    )


def udp_loss_ns2(_: Runs) -> str:
    """Return ns-2's UDP losses with 256 FTPs."""
    losses = ", ".join(short(NS2[q, 256][0]) for q in ("td", "red", "gred"))
    return f"{losses} % with Tail Drop, REDstd and GREDstd"


def connections(runs: Runs) -> str:
    """Return the open connections by sessions, under Tail Drop."""
    return ", ".join(short(mean(runs["first"], "active", sessions=s)) for s in SESSIONS)


def growth_of_larger(runs: Runs) -> str:
    """Return the growth of the drop probability for users with larger objects."""
    texts = []
    for k in (3, 10):
        users = f"objects {k} times as large, as many times fewer pages"
        each = [
            max_p(runs, mean(runs["other-users"], "active", users=users, sessions=s))
            for s in SESSIONS
        ]
        texts.append(f"{short(each[1] / each[0])} and {short(each[3] / each[2])} ({k} times)")
    return ", ".join(texts)


def misjudged(runs: Runs) -> str:
    """Return P(N >= 10) at 1400 sessions with the parameters made for 1200, by discipline."""
    frame = runs["made-for-1200"]
    each = (f"{name} {short(mean(frame, 'runs_of_10', q=q))}" for q, name in NAMES.items())
    return ", ".join(each)


def half_duplex_goodput(runs: Runs) -> str:
    """Return the range of payload goodputs when acks share the bottleneck."""
    frame = payload(runs["half-duplex"])
    means = [mean(frame, "goodput_mbps", q=q, flows=n) for q in NAMES for n in FTPS]
    return f"{short(min(means))} to {short(max(means))} Mbit/s"


def two_way_goodput(runs: Runs, n: int) -> str:
    """Return the sums of both directions' goodputs with two-way traffic."""
    sums = runs["two-way"].with_columns(both=pl.col("goodput_mbps") + pl.col("goodput_back_mbps"))
    each = (f"{name} {short(mean(sums, 'both', q=q, flows=n))}" for q, name in NAMES.items())
    return f"{', '.join(each)} Mbit/s"


def two_way_runs(runs: Runs) -> str:
    """Return Tail Drop's mean run of losses with two-way and with one-way traffic."""
    each = [
        f"{short(mean(runs['two-way'], 'run_mean', q='td', flows=n))} against "
        f"{short(mean(runs['ftp'], 'run_mean', q='td', flows=n))}"
        for n in (FTPS[0], FTPS[-1])
    ]
    return " and ".join(each)


def profile_share(runs: Runs, q: str) -> str:
    """Return the share of the goodput of the flows in profile, by number of FTPs."""
    frame = runs["profile"].with_columns(
        share=100 * pl.col("goodput_in_mbps") / pl.col("goodput_mbps")
    )
    loads = sorted(set(frame["flows"]))
    return ", ".join(short(mean(frame, "share", q=q, flows=n)) for n in loads) + " %"


def profile_goodput(runs: Runs, n: int) -> str:
    """Return the goodput of all flows with RIO, REDstd and Tail Drop."""
    frame = runs["profile"]
    each = [short(mean(frame, "goodput_mbps", q=q, flows=n)) for q in ("rio", "red", "td")]
    return f"RIO {each[0]}, REDstd {each[1]}, Tail Drop {each[2]} Mbit/s"


def live_deviation(runs: Runs) -> str:
    """Return the largest difference of the delay's deviation from the simulated one."""
    return f"{short(1e3 * largest_difference(runs, 'ftp', 'delay_std_s'))} ms"


def live_goodput(runs: Runs) -> str:
    """Return the largest difference of the goodput on real packets from the simulated one."""
    return f"{short(largest_difference(runs, 'ftp', 'goodput_mbps'))} Mbit/s"


FACTS: Mapping[str, Callable[[Runs], str]] = {
    "runs-by-spacing": runs_by_spacing,
    "near-ns2": near_ns2,
    "udp-loss-ns2": udp_loss_ns2,
    "connections": connections,
    "growth-of-larger": growth_of_larger,
    "misjudged": misjudged,
    "half-duplex-goodput": half_duplex_goodput,
    "two-way-light": partial(two_way_goodput, n=16),
    "two-way-heavy": partial(two_way_goodput, n=256),
    "two-way-runs": two_way_runs,
    "share-rio": partial(profile_share, q="rio"),
    "share-red": partial(profile_share, q="red"),
    "share-td": partial(profile_share, q="td"),
    "profile-light": partial(profile_goodput, n=16),
    "profile-heavy": partial(profile_goodput, n=256),
    "live-queue": partial(ratio_text, of="ftp", column="queue_packets"),
    "live-deviation": live_deviation,
    "live-goodput": live_goodput,
    "live-loss": partial(ratio_text, of="ftp", column="loss"),
}
