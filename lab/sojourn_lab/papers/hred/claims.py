"""Claims of the paper on HRED; their rules were fixed before the runs."""

from dataclasses import replace

from sojourn_lab.papers.hred.checks import (
    after_web_starts,
    avq_is_short,
    blue_is_arbitrary,
    full_use,
    hred_holds_the_middle,
    hred_varies_little,
    integrators_hold_the_mean,
    losses,
    order_with_web,
    quiet_without_web,
    red_grows,
    red_varies_less,
    rem_swings,
    short_paths_get_more,
    small_gamma,
)
from sojourn_lab.papers.hred.responses import (
    answers_to_a_rise,
    gateway_use,
    response_times,
    stability,
    use_after_a_fall,
)
from sojourn_lab.papers.hred.sections import (
    avq_grows_again,
    corrections_help,
    marks_replace_drops,
    red_has_no_queue,
    t_alpha_trades,
)
from sojourn_lab.reproduction.claims import Claim

PAIRED = "Paired by seed; the 95 % interval of the difference is above 0."
AND_NOWHERE = f"Mean over all points. {PAIRED} At no point is the order significantly reversed."
NORMALISED = "Of the queue over time, as a share of the buffer."

CLAIMS = [
    Claim(
        "003-C1", "HRED holds the mean queue at three eighths of the buffer for every T and B.",
        "3a", "0.375", f"{NORMALISED} For each B, the T with the largest error within 3 points.",
        hred_holds_the_middle, ("sweep",),
    ),
    Claim(
        "003-C2", "HRED's deviation is small, and smaller with more traffic and more buffer.",
        "3b", "small, falls with T and B",
        f"{NORMALISED} Small: below half the width of the band, 0.125. Falls: T 600 against 100 "
        f"and the largest B against the smallest. {PAIRED}",
        hred_varies_little, ("sweep",),
    ),
    Claim(
        "003-C3", "RED's mean queue grows linearly with the traffic.", "4a, 4b", "linear",
        f"A straight line through the means over T has R² > 0.95. Rises at every step: {PAIRED}",
        red_grows, ("sweep",),
    ),
    Claim(
        "003-C4", "RED's deviation is smaller than Blue's, PIC's and REM's.", "5a, 5b", "less",
        AND_NOWHERE, red_varies_less, ("sweep",),
    ),
    Claim(
        "003-C5", "Blue's mean queue is arbitrary, its deviation large.", "4a, 4b, 5a, 5b",
        "arbitrary; large",
        "Arbitrary: the means over T differ by more than the band (0.25). Large: above HRED's. "
        + AND_NOWHERE,
        blue_is_arbitrary, ("sweep",),
    ),
    Claim(
        "003-C6", "PIC and REM hold their target; their deviation is at least Blue's.",
        "4a, 4b, 5a, 5b", "0.375; not less than Blue's",
        "The T with the largest error within 3 points. The 95 % interval of the deviation minus "
        "Blue's, mean over T, is not below 0.",
        integrators_hold_the_mean, ("sweep",),
    ),
    Claim(
        "003-C7", "REM's deviation is largest at mid load, where the queue oscillates over the "
        "whole buffer; at light load the queue is mostly below 300 kB of 500.", "6a, 6b, 6c",
        "largest at T 300",
        f"{PAIRED} Whole: minimum below 0.05 and maximum above 0.95 of the buffer. Mostly: 75 % "
        "of the time.",
        rem_swings, ("rem",),
    ),
    Claim(
        "003-C8", "With a smaller gamma REM's deviation is like PIC's.", "gamma", "equal",
        "At one of the smaller gammas within 20 % of PIC's, 500 kB.", small_gamma,
        ("gamma", "sweep"),
    ),
    Claim(
        "003-C9", "AVQ has the smallest queue; at light load its deviation is large, and more "
        "buffer does not reduce it.", "4a, 4b, 5a, 5b", "smallest; large at T 100",
        f"{AND_NOWHERE} Not reduced: the 95 % interval of the normalised deviation with 500 kB "
        "minus that with 300 kB is not below 0.",
        avq_is_short, ("sweep",),
    ),
    Claim(
        "003-C10", "Loss rates of the sweep.", "4a, 4b", "0.005 to above 0.1",
        "The smallest of all points within 20 %, the largest above 0.1.", losses, ("sweep",),
    ),
    Claim(
        "003-C11", "Without web traffic all normalised deviations are below 0.11.", "8", "< 0.11",
        "300 FTPs, web rate 0, mean over seeds.", quiet_without_web, ("web",),
    ),
    Claim(
        "003-C12", "With web traffic AVQ's deviation is the smallest, RED's and HRED's are "
        "small, Blue's and PIC's large.",
        "8", "order", AND_NOWHERE, order_with_web, ("web",),
    ),
    Claim(
        "003-C13", "After the web traffic starts Blue and PIC oscillate, HRED is mostly within its "
        "thresholds.", "7a, 7b, 7c, 7d", "mostly within; oscillate",
        f"Mostly: 75 % of the time. Oscillate: a deviation above 1.5 times HRED's. {PAIRED}",
        after_web_starts, ("web_on",),
    ),
    Claim(
        "003-C14", "The share of the goodput that 150 flows of 20 ms take from 150 of 200 ms.",
        "Table 2", "RED 76.9, Blue 73.8, PIC 76.2, AVQ 89.7, HRED 76.0, tail drop 91.6 %",
        f"Within 3 points; and AVQ and tail drop above the others. {PAIRED}",
        short_paths_get_more, ("shares",),
    ),
    Claim(
        "003-C15", "In table 2 the goodput is above 99 % of the bandwidth.", "Table 2", "> 99 %",
        "Packets delivered in order, 500 bytes each, over the rate.", full_use, ("shares",),
    ),
    Claim(
        "003-C16", "When the traffic rises by 30 %, Blue's queue grows until it overflows, PIC's "
        "leaves its target for some time, AVQ's and HRED's recover at once.", "9a, 9b, 9c, 9d",
        "shape",
        "Overflow: above 0.98 of the buffer. Of the seconds of higher load with a mean queue 0.1 B "
        "or more from the one before: some time is more than 5 s, at once is fewer than 2 s.",
        answers_to_a_rise, ("step",),
    ),
    Claim(
        "003-C17", "When the traffic falls again the utilisation falls with Blue and PIC, and not "
        "with AVQ and HRED.", "10a, 10b, 10c, 10d", "less; full",
        f"Over all the time after the fall; by more than 0.1 points. {PAIRED} Full: above 97 %.",
        use_after_a_fall, ("step",),
    ),
    Claim(
        "003-C18", "AVQ and HRED respond fast to every step; PIC's time grows with its size, "
        "Blue's is irregular.", "11a, 11b", "order",
        "Time until the deviation over 5 s, about the mean before the change, is below 1.5 times "
        f"that before it. {AND_NOWHERE} Flat: the slope over the size of the step is below 1 s per "
        "10 %; grows: it is above 0; irregular: at some size the seeds differ by more than half "
        "their mean. Undecided where all times are cut by the next change.",
        response_times, ("step",),
    ),
    Claim(
        "003-C19", "On the testbed all have full utilisation except RED with 50 and 60 flows; RED "
        "and AVQ have the highest loss.", "13c, 13d", "order",
        f"Full: above 97 % at every number of flows. {PAIRED}", gateway_use, ("testbed",),
    ),
    Claim(
        "003-C20", "The stability bounds, and the reduction of the largest change of load by a "
        "higher max_th.", "bound", "4/(4 kappa - 1), 4/(6 kappa - 1); more than two thirds",
        "(11) and (16) solved here, within 0.1 %. Stable: within the bound the deviation is below "
        "half the width of the band, 0.125, at every point measured.",
        stability, ("bound",),
    ),
    Claim(
        "003-C21", "On the testbed RED does not build up a queue with 50 and 60 connections.",
        "13a", "no queue", "Mean queue below 5 % of the buffer, five packets.",
        red_has_no_queue, ("testbed",),
    ),
    Claim(
        "003-C22", "On the testbed AVQ's queue increases again with 100 and 120 connections.",
        "13a", "increases", f"Mean queue at each number of flows from 80 on. {PAIRED}",
        avq_grows_again, ("testbed",),
    ),
    Claim(
        "003-C23", "Two corrections of p_min, a step at every overflow or a reset to the measured "
        "drop probability, end an overflow sooner.", "overflow", "fewer overflows",
        "Drops by overflow, and time with a queue of 0.95 B or more, in the ten seconds after 600 "
        f"FTPs join 100: below half of those without. {PAIRED}", corrections_help, ("overflow",),
    ),
    Claim(
        "003-C24", "A T_alpha below the round-trip time makes HRED unstable, a large one makes it "
        "slow.", "t_alpha", "order",
        "T_beta is half of T_alpha. Unstable: a larger deviation before the step. Slow: time until "
        f"the mean of 5 s stays in the band, from the start and from the step. {PAIRED}",
        t_alpha_trades, ("t_alpha",),
    ),
    Claim(
        "003-C25", "With ECN the AQMs operate similarly but rarely have drops.", "ecn",
        "similar; rarely",
        "T 100, 300 and 600, 300 kB. Similar: mean and deviation of the queue within half the "
        "width of the band, 12.5 points. Rarely: loss, averaged over T, below a tenth of the loss "
        f"with drops. {PAIRED}", marks_replace_drops, ("ecn",),
    ),
]  # fmt: skip

WHY = {
    "003-C1": "K_beta is four times K_alpha: balance above the middle",
    "003-C2": "200 kB with 100 FTPs leaves the band",
    "003-C3": "gentle RED is steeper above max_th, as in ns-2",
    "003-C4": "one or two loads reverse the order",
    "003-C5": "three seeds of Blue differ widely at 300 kB",
    "003-C6": "PIC starts at 0 and converges slowly",
    "003-C7": "with the stated gamma REM responds too slowly",
    "003-C8": "close on average, but three seeds leave wide intervals",
    "003-C9": "normalised deviation falls with a larger buffer",
    "003-C13": "Blue's deviation is near 1.5 times HRED's",
    "003-C14": "buffer and access links of table 2 are unstated",
    "003-C15": "retransmissions are not goodput; the link is full",
    "003-C16": "PIC's queue is still falling from full at the step",
    "003-C17": "PIC's queue is still full when traffic falls",
    "003-C18": "PIC and Blue have not converged; many times are cut",
    "003-C19": "RED's loss is highest with few flows only",
    "003-C20": "two thirds is a limit, not exceeded",
    "003-C21": "RED's queue oscillates, but is not empty",
    "003-C22": "AVQ's queue falls with every further flow",
    "003-C25": "RED's queue oscillates with marks, AVQ's grows",
}
"""Reasons, in at most ten words, of verdicts other than `holds`."""

CLAIMS = [replace(one, why=WHY.get(one.id, "")) for one in CLAIMS]
