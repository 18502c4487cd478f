"""HRED: a stable AQM algorithm with fast adaptation, against RED, Blue, PIC, REM and AVQ.

The paper uses ns-2 and a dumbbell of 45 Mbit/s with a buffer in bytes, base round-trip times
uniform on 40 to 200 ms (one fixed set), and packets of 500 bytes. Traffic T is T FTPs and T/12 web
sessions per second, each of ten transfers of Pareto length (mean 10 packets, shape 1.2). It
measures 50 s after 150 s of warm-up. Further experiments are steps of the load, and a testbed: a
Linux 2.4.9 gateway at 10 Mbit/s with 100 ms and 50 kB. Parameters are from its table 1; all
disciplines drop, none marks.

Our choices where the paper states nothing:

- Sweep: T from 100 to 600; HRED with 200, 300, 500 and 1000 kB, the others with 300 and 500 kB;
  300 kB wherever the paper names no buffer.
- TCP: NewReno as ns-2's agents (an ack per packet, no receiver's limit), 500 bytes on the wire;
  FTPs start in the first 10 s.
- Access links: omitted, and acks return as a pure delay. `reports/validation.md` shows that this
  makes no measurable difference as long as round-trip times differ. Table 2 has equal round-trip
  times, and therefore access links of 100 Mbit/s.
- Web sessions: successive transfers, each on a new connection, with pauses of 1 s on average and
  Lomax (Pareto II) lengths, as in ns-2's own example of web traffic; 50 hosts whose round-trip
  times are drawn for every seed.
- RED: ns-2's gentle mode, spacing (`wait`) and byte mode, as in the validation against ns-2. With
  max_th at half the buffer both gentle modes are the same.
- HRED: p_min starts at 0.01 and never falls below 0.00001 (from 0 it could not rise).
- Figure 8: 0 to 50 sessions/s. Table 2: FTPs alone, 150 with 20 ms and 150 with 200 ms.
- Step: 30 % is 90 FTPs and 7.5 sessions/s more, all at once from 100 s to 150 s; steps of 10 to
  50 % likewise. The response ends when the deviation of the queue over 5 s, about its mean before
  the first change, is below 1.5 times the one before that change. The metric `response_time_s`
  takes the deviation about the mean of those 5 s; it cannot detect a queue that is constant at a
  wrong level (table `step` has both). A response that does not end before the next change
  is cut there, and marked.
- Testbed: x long flows and x/2 flows of 10 packets per second, x from 50 to 120, with the same TCP
  and 100 ms each; RED is computed in floating point and gentle.
- Corrections of overflow (III.D): the step is Blue's d1; the reset compares the drops of a T_beta
  with 1.5 times the probability of the map. Symmetric thresholds are B/4 and 3B/4 with T_alpha
  equal to T_beta. 600 FTPs join 100 at 30 s, without web sessions.

The paper implies, and does not say, that T_alpha of twice T_beta makes K_beta four times K_alpha:
(14) and (15) have the square of the times. p_min therefore falls four times as fast below min_th as
it rises above max_th, for the same distance.

Settings varied: PIC with another crossover frequency (section IV.B reconfigures it for a quick
response, without numbers), or another initial drop probability (footnote 8); table 2 with 500 kB,
and with ns-2's default of 50 packets for tail drop; packets of 250 to 750 bytes in table 2 and on
the testbed; web sessions without pauses; independent drops of RED; REM with ten times the gain;
SACK and delayed acks on the testbed. Each is tried on the claims that read runs of it.

Scale: three seeds (two in tables without claims, five where runs differ most); the paper has five
for response times and does not state the others. Queues over time are sampled every 50 ms. Quick
mode has fewer points, 12 s after 18 s of warm-up, and steps at 40 s; PIC and Blue have not
converged by then.

Additions: HRED's corrections of overflow, T_alpha from 50 to 1600 ms, all AQMs with ECN, and XCP;
two figures compare the stability bound (11) with the measured deviation, over the buffer and over
the gain |G| of (9). Several tables repeat claims that do not hold with one parameter changed.
"""

from typing import TYPE_CHECKING

from sojourn_lab.papers.hred import drawings, tables
from sojourn_lab.papers.hred.claims import CLAIMS
from sojourn_lab.papers.hred.common import SetUp
from sojourn_lab.papers.hred.drawings import MEAN, STD
from sojourn_lab.papers.hred.extras import scenarios
from sojourn_lab.papers.hred.facts import FACTS
from sojourn_lab.papers.hred.live_runs import LIVE, live
from sojourn_lab.papers.hred.settings import SETTINGS
from sojourn_lab.reproduction.claims import Runs
from sojourn_lab.reproduction.paper import figure, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CLAIMS",
    "FACTS",
    "LEFT_OUT",
    "LIVE",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "SetUp",
    "live",
    "scenarios",
]

LEFT_OUT = {
    "1": "the pseudo-code of HRED, which is built as the discipline `hred`",
    "12": "a diagram of the testbed, which the text describes and figures 13a to 13d simulate",
}

TITLE = "HRED: stability and fast adaptation"
REFERENCE = "Joo, Bahk and Lumetta, Journal of Communications and Networks"


@figure("2", "Drop probability of HRED, and of gentle RED (own drawing)", needs=())
def figure_2(_: Runs, ax: "Axes") -> None:
    """Draw the maps."""
    drawings.maps(ax)


table_1 = table("Table 1", "Parameters of the disciplines", needs=())(tables.parameters)
figure_3a = figure("3a", "HRED: mean queue", needs=["sweep"])(
    lambda runs, ax: drawings.of_hred(runs, ax, "mean", MEAN)
)
figure_3b = figure("3b", "HRED: standard deviation of the queue", needs=["sweep"])(
    lambda runs, ax: drawings.of_hred(runs, ax, "std", STD)
)
figure_4a = figure("4a", "Mean queue, 300 kB", needs=["sweep"])(
    lambda runs, ax: drawings.of_all(runs, ax, "mean", MEAN, 300)
)
figure_4b = figure("4b", "Mean queue, 500 kB", needs=["sweep"])(
    lambda runs, ax: drawings.of_all(runs, ax, "mean", MEAN, 500)
)
figure_5a = figure("5a", "Standard deviation of the queue, 300 kB", needs=["sweep"])(
    lambda runs, ax: drawings.of_all(runs, ax, "std", STD, 300)
)
figure_5b = figure("5b", "Standard deviation of the queue, 500 kB", needs=["sweep"])(
    lambda runs, ax: drawings.of_all(runs, ax, "std", STD, 500)
)
figure_6a = figure("6a", "REM, 500 kB, T 100 (seed 1)", needs=["rem"])(
    lambda runs, ax: drawings.rem(runs, ax, 100)
)
figure_6b = figure("6b", "REM, 500 kB, T 300 (seed 1)", needs=["rem"])(
    lambda runs, ax: drawings.rem(runs, ax, 300)
)
figure_6c = figure("6c", "REM, 500 kB, T 600 (seed 1)", needs=["rem"])(
    lambda runs, ax: drawings.rem(runs, ax, 600)
)

WEB_ON = "300 FTPs, web sessions from 100 s on (seed 1)"
figure_7a = figure("7a", f"Blue: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: drawings.web_on(runs, ax, "blue")
)
figure_7b = figure("7b", f"PIC: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: drawings.web_on(runs, ax, "pi")
)
figure_7c = figure("7c", f"AVQ: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: drawings.web_on(runs, ax, "avq")
)
figure_7d = figure("7d", f"HRED: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: drawings.web_on(runs, ax, "hred")
)
figure_8 = figure("8", "Standard deviation of the queue, 300 FTPs and web sessions", needs=["web"])(
    drawings.deviation_by_web
)
table_2 = table(
    "Table 2", "Share of goodput of 150 flows of 20 ms against 150 of 200 ms", needs=["shares"]
)(tables.goodput_shares)

STEP = "30 % more traffic from 100 to 150 s (seed 1)"
BOTH = ["step", "step settings"]
figure_9a = figure("9a", f"Blue: {STEP}", needs=["step"])(
    lambda runs, ax: drawings.step(runs, ax, "blue")
)
figure_9b = figure("9b", f"PIC: {STEP}", needs=BOTH)(lambda runs, ax: drawings.step(runs, ax, "pi"))
figure_9c = figure("9c", f"AVQ: {STEP}", needs=["step"])(
    lambda runs, ax: drawings.step(runs, ax, "avq")
)
figure_9d = figure("9d", f"HRED: {STEP}", needs=["step"])(
    lambda runs, ax: drawings.step(runs, ax, "hred")
)
figure_10a = figure("10a", f"Blue: {STEP}", needs=["step"])(
    lambda runs, ax: drawings.used(runs, ax, "blue")
)
figure_10b = figure("10b", f"PIC: {STEP}", needs=BOTH)(
    lambda runs, ax: drawings.used(runs, ax, "pi")
)
figure_10c = figure("10c", f"AVQ: {STEP}", needs=["step"])(
    lambda runs, ax: drawings.used(runs, ax, "avq")
)
figure_10d = figure("10d", f"HRED: {STEP}", needs=["step"])(
    lambda runs, ax: drawings.used(runs, ax, "hred")
)
figure_11a = figure("11a", "Response time to more traffic", needs=BOTH)(
    lambda runs, ax: drawings.response(runs, ax, "rise_about_s")
)
figure_11b = figure("11b", "Response time to less traffic", needs=BOTH)(
    lambda runs, ax: drawings.response(runs, ax, "fall_about_s")
)
figure_13a = figure("13a", "Testbed (simulated): mean queue", needs=["testbed"])(
    lambda runs, ax: drawings.bed(runs, ax, "mean", "mean queue, kB", 50)
)
figure_13b = figure("13b", "Testbed (simulated): deviation of the queue", needs=["testbed"])(
    lambda runs, ax: drawings.bed(runs, ax, "std", "deviation of the queue, kB", 50)
)
figure_13c = figure("13c", "Testbed (simulated): utilisation", needs=["testbed"])(
    lambda runs, ax: drawings.bed(runs, ax, "utilisation", "utilisation, %", 100, 90)
)
figure_13d = figure("13d", "Testbed (simulated): loss", needs=["testbed"])(
    lambda runs, ax: drawings.bed(runs, ax, "loss", "loss, %", 100)
)

figure_overflow = figure(
    "overflow", "HRED, 300 kB: 600 FTPs join 100 at 30 s (seed 1)", needs=["overflow"]
)(drawings.overflows)
figure_t_alpha = figure(
    "t_alpha", "HRED, 300 FTPs: queue before the step, by T_alpha", needs=["t_alpha"]
)(drawings.by_t_alpha)
figure_t_alpha_times = figure(
    "t_alpha times", "HRED, 300 FTPs: convergence by T_alpha", needs=["t_alpha"]
)(drawings.times_by_t_alpha)
figure_ecn = figure("ecn", "Loss with ECN: marks instead of drops, 300 kB", needs=["ecn"])(
    drawings.losses_with_ecn
)
figure_xcp = figure("xcp", "XCP and HRED in the network of table 2", needs=["xcp"])(
    drawings.shares_with_xcp
)
figure_bound = figure(
    "bound", "HRED: deviation over the buffer, and the bound (11)", needs=["bound"]
)(drawings.over_buffers)
figure_gain = figure("gain", "HRED, 300 kB: deviation over the gain |G| of (9)", needs=["gain"])(
    drawings.over_gains
)

table_overflow_table = table(
    "overflow table",
    "HRED: overflow of the buffer, by correction and thresholds",
    needs=["overflow"],
)(tables.overflowed)
table_t_alpha_table = table(
    "t_alpha table", "HRED: T_alpha, with T_beta half of it, and a step of 30 %", needs=["t_alpha"]
)(tables.by_t_alpha)
table_ratio = table("ratio", "HRED: other ratios of T_alpha to T_beta", needs=["ratio"])(
    tables.by_ratio
)
table_ecn_table = table("ecn table", "300 kB: drops, or ECN and marks", needs=["ecn"])(
    tables.with_ecn
)
table_xcp_table = table(
    "xcp table", "300 kB: XCP, and HRED with NewReno", needs=["xcp", "xcp sweep", "sweep"]
)(tables.with_xcp)
table_gamma = table(
    "gamma", "REM, 500 kB, with other gamma, compared with PIC", needs=["gamma", "sweep"]
)(tables.by_gamma)
table_ns_2 = table("ns-2", "Compared with ns-2: 300 kB, with web sessions", needs=["sweep"])(
    tables.beside_ns2
)
table_avq = table(
    "avq", "AVQ, 300 kB, target utilisation below 1, compared with RED", needs=["avq", "sweep"]
)(tables.by_use)
table_late = table(
    "late", "PIC starts with drop probability 0: a longer warm-up", needs=["late", "sweep"]
)(tables.with_more_time)
table_p_init = table("p_init", "PIC, 300 kB, by its initial drop probability", needs=["p_init"])(
    tables.by_start
)
table_step = table("step", "Response to a step, by two definitions", needs=BOTH)(tables.answers)
table_paths = table(
    "paths", "Tail drop: sensitivity of the share of the 20 ms group", needs=["paths"]
)(tables.shares_by_path)
table_tcp = table("tcp", "300 FTPs, 25 web sessions/s: other TCPs", needs=["tcp", "sweep"])(
    tables.other_tcps
)
table_reds = table("reds", "Testbed (simulated): RED with one parameter changed", needs=["reds"])(
    tables.other_reds
)
