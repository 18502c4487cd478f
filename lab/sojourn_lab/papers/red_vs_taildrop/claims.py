"""Claims of `red_vs_taildrop`."""

from dataclasses import replace

from sojourn_lab.papers.red_vs_taildrop import rules, rules_web
from sojourn_lab.reproduction.claims import Claim

PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
FTP, WEB = ("ftp",), ("web",)


BOTH = ("ftp", "web")

CLAIMS = [
    Claim(
        "001-C1",
        "FTP goodput is practically equal for all disciplines, and almost optimal.",
        "3 goodput",
        "about 8.4 Mbit/s",
        "Within 3 points of the link of 8.4; above 95 % of the rate that UDP leaves; at each N all "
        "disciplines within 3 % of the link's rate of each other.",
        rules.goodput,
        FTP,
    ),
    Claim(
        "001-C2",
        "FTP goodput is slightly lower for (G)REDstd at N = 16: max_p is too aggressive, "
        "the mean queue near min_th.",
        "3 goodput",
        "less",
        f"Below Tail Drop's. {PAIRS} Mean queue in the lowest quarter between the thresholds.",
        rules.too_aggressive,
        FTP,
    ),
    Claim(
        "001-C3",
        "UDP's loss is lower with REDopt than with (G)REDstd at light load, with Tail "
        "Drop in between; at high load the differences vanish.",
        "3b",
        "a factor of 2",
        f"N = 16: the ratio within 20 %, and the order. {PAIRS} N = 256: the largest at most 20 % "
        "above the smallest.",
        rules.udp_light,
        FTP,
    ),
    Claim(
        "001-C4",
        "Mean delay grows with N for all; Tail Drop is near B, RED below max_th.",
        "3c",
        "shape",
        "Means grow from each N to the next; Tail Drop's mean queue is above 80 % of B, "
        "RED's are below max_th, at every N.",
        rules.delays,
        FTP,
    ),
    Claim(
        "001-C5",
        "The delay varies much less with N for REDopt than for (G)REDstd, whose queues "
        "go from min_th to max_th.",
        "3c",
        "shape",
        "Largest delay over smallest, minus 1: twice REDopt's below the others'. (G)REDstd's "
        "mean queue is in the lowest quarter between the thresholds at 16 flows and in the highest "
        "at 256; REDopt's is in neither at any N.",
        rules.drift,
        FTP,
    ),
    Claim(
        "001-C6",
        "Tail Drop's delay varies much at light load (global synchronisation), less at high load.",
        "3e",
        "shape",
        f"Standard deviation: falls from each N to the next; at 16 flows above RED's. {PAIRS}",
        rules.swings,
        FTP,
    ),
    Claim(
        "001-C7",
        "Consecutive losses, N below 64: all RED variants alike, Tail Drop much worse.",
        "3d light",
        "shape",
        f"Mean run at 16 and 32 flows: within 20 % of GREDstd's; and the order. {PAIRS}",
        rules.light_runs,
        FTP,
    ),
    Claim(
        "001-C8",
        "Consecutive losses, N = 256: REDstd bad (its average is above max_th), GREDstd "
        "better, REDopt good but with a heavy tail.",
        "3d",
        "shape",
        "The average above max_th; mean run; share of runs of 2 and more; REDopt's share of runs "
        f"of 10 and more above Tail Drop's. {PAIRS}",
        rules.many_runs,
        FTP,
    ),
    Claim(
        "001-C9",
        "Tail Drop with a buffer that gives REDopt's delay has REDopt's goodput.",
        "buffers",
        "equal",
        "Tail Drop's goodput over its delay with four buffers, read at REDopt's delay; within 3 %.",
        rules.same_delay,
        ("ftp", "buffers"),
    ),
    Claim(
        "001-C10",
        "Web goodput rises with the sessions to a maximum.",
        "4 goodput",
        "8.7 Mbit/s",
        f"From 800 to 1000 to 1200 sessions. {PAIRS} The largest mean within 3 points of the link.",
        rules_web.most_goodput,
        WEB,
    ),
    Claim(
        "001-C11",
        "Web goodput does not depend on the discipline.",
        "4 goodput",
        "equal",
        "All disciplines within 3 % of the link's rate of each other at each number of sessions.",
        rules_web.same_web_goodput,
        WEB,
    ),
    Claim(
        "001-C12",
        "The drop probability that REDopt is configured for grows with the sessions.",
        "flows",
        "2.6 times from 800 to 1000, 16.7 times from 1200 to 1400",
        "The model's max_p for the open connections of each first run; ratios within 20 %.",
        rules_web.estimate,
        ("first", "model"),
    ),
    Claim(
        "001-C13",
        "Web: UDP's loss is lowest with Tail Drop, mainly at 1200 sessions.",
        "4b",
        "lowest",
        f"{PAIRS} And the ratio is largest at 1200.",
        rules_web.web_losses,
        WEB,
    ),
    Claim(
        "001-C14",
        "Web: mean delay grows with the sessions; REDopt's is the lowest, Tail Drop's the highest.",
        "4c",
        "shape",
        f"From each number of sessions to the next, and the order at each. {PAIRS}",
        rules_web.web_delays,
        WEB,
    ),
    Claim(
        "001-C15",
        "Web: REDopt's delay varies more than (G)REDstd's (its w_q is smaller).",
        "4 std",
        "more",
        f"Standard deviation, at each number of sessions. {PAIRS}",
        rules_web.web_deviations,
        WEB,
    ),
    Claim(
        "001-C16",
        "Web, 1400 sessions: more consecutive losses with RED than with Tail Drop.",
        "4d",
        "significantly worse",
        f"P(N >= 10), the tail that figure 4d shows. {PAIRS}",
        rules_web.web_runs,
        WEB,
    ),
    Claim(
        "001-C17",
        "A larger w_q shortens runs of losses.",
        "wq",
        "shorter",
        f"1400 sessions, mean run with 0.02 against 0.0005. {PAIRS}",
        rules_web.weights_matter,
        ("weights",),
    ),
    Claim(
        "001-C18",
        "Below 800 sessions the link is underloaded; above 1400 web behaves as FTP.",
        "flows",
        "shape",
        "600 sessions: utilisation below 85 %. 1600: Tail Drop's mean queue above "
        "80 % of the buffer, goodput within 3 % of the goodput of 256 FTPs.",
        rules_web.beyond,
        ("first", "ftp"),
    ),
    Claim(
        "001-C19",
        "Web: Tail Drop's delay varies less with more sessions.",
        "4 std",
        "falls",
        f"Standard deviation: at 1400 sessions below that at 800, and falls at each step. {PAIRS}",
        rules_web.web_falls,
        WEB,
    ),
    Claim(
        "001-C20",
        "Web: REDstd's delay varies less than Tail Drop's.",
        "4 std",
        "less",
        f"Standard deviation, at each number of sessions. {PAIRS}",
        rules_web.web_red_deviation,
        WEB,
    ),
    Claim(
        "001-C21",
        "The deviation of the delay changes more with the load with Tail Drop than with RED.",
        "3e, 4 std",
        "more",
        f"Largest less smallest deviation over the loads, FTP and web. {PAIRS}",
        rules_web.varies_more,
        BOTH,
    ),
    Claim(
        "001-C22",
        "Tail Drop performs well in consecutive losses, whatever the load.",
        "3d, 3d light, 4d",
        "well",
        "At each number of FTPs and of sessions, fewer than one run of losses in a thousand has 10 "
        "or more: the interval of P(N >= 10) is below 0.001.",
        rules_web.few_long_runs,
        BOTH,
    ),
]

WHY = {
    "001-C1": "ours counts headers, and acks have their own link",
    "001-C3": "a full buffer favours evenly spaced UDP packets",
    "001-C4": "synchronised flows empty a fifth of the buffer",
    "001-C5": "REDopt's queue just touches the upper quarter",
    "001-C8": "drops hold the average at max_th",
    "001-C10": "ours counts headers; the paper probably payload",
    "001-C12": "the paper's web users (its Table 1) are missing",
    "001-C13": "lowest on average; four seeds leave wide intervals",
    "001-C14": "REDopt's small w_q lets bursts in at light load",
    "001-C15": "at high load REDopt's queue is much shorter",
    "001-C16": "only REDstd drops everything above max_th",
    "001-C17": "GREDstd's runs are short with every weight",
    "001-C18": "web traffic of 600 sessions varies between seeds",
    "001-C19": "the buffer grows with the sessions",
    "001-C20": "deviations at 1400 sessions differ much between seeds",
    "001-C21": "web: deviations at 1400 sessions differ between seeds",
}
"""Reasons, in at most ten words, of verdicts other than `holds`."""

CLAIMS = [replace(one, why=WHY.get(one.id, "")) for one in CLAIMS]
