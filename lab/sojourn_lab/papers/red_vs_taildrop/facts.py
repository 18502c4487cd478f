"""Measured texts of the findings that are not parts of claims."""

from collections.abc import Callable, Mapping
from functools import partial

from sojourn_lab.papers.red_vs_taildrop.rules import NS2, max_p
from sojourn_lab.papers.red_vs_taildrop.runs import SESSIONS
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.parts import short
from sojourn_lab.reproduction.side_by_side import largest_difference, ratio_text


def runs_by_spacing(runs: Runs) -> str:
    """Return REDstd's mean run with 256 FTPs for the three spacings of drops."""
    here = {"q": "red", "flows": 256}
    no, yes = (mean(runs["spread"], "run_mean", wait=wait, **here) for wait in ("no", "yes"))
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
    sessions = (short(mean(runs["first"], "active", sessions=s)) for s in SESSIONS)
    return ", ".join(sessions)


def growth_of_larger(runs: Runs) -> str:
    """Return the growth of the drop probability for users with larger objects."""
    texts = []
    for k in (3, 10):
        users = f"objects {k} times as large, as many times fewer pages"
        each = [
            max_p(runs, mean(runs["users"], "active", users=users, sessions=s)) for s in SESSIONS
        ]
        texts.append(f"{short(each[1] / each[0])} and {short(each[3] / each[2])} ({k} times)")
    return ", ".join(texts)


def early_load(runs: Runs) -> str:
    """Return the open connections at 1400 sessions in short and in long runs."""
    brief = mean(runs["users"], "active", users="as chosen", sessions=1400)
    return f"{short(brief)} against {connections(runs).split(', ')[-1]}"


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
    "early-load": early_load,
    "live-queue": partial(ratio_text, of="ftp", column="queue_packets"),
    "live-deviation": live_deviation,
    "live-goodput": live_goodput,
    "live-loss": partial(ratio_text, of="ftp", column="loss"),
}
