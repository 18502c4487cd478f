"""CoDel in data centres: incast queries to many servers, and short flows with a long flow.

The paper uses ns-2. Hosts share one switch; every link has 1 Gbit/s, the base round-trip time is
300 us, the buffer 200 packets of 1 kB; TCP SACK with RTOmin 10 ms. The disciplines are DropTail,
adaptive RED (25 and 51 packets) and CoDel (target 300 us, interval 750 us), all dropping. One long
flow to the client is always active.

The paper states nothing else. Our choices, as in our runs of ns-2:

- Links: 75 us per link and direction. A server's own link has the discipline under test too, as
  ns-2's duplex links have one type. The queue of the switch is the port to the client; acks do not
  queue.
- TCP: 1000 bytes on the wire, 40 of them header; an ack per packet, an initial window of 2, no
  receiver's limit; a clock of 100 us (ns-2's default of 10 ms makes any RTOmin 20 ms). The RTO
  before the first measurement is 10 ms too (table SYNs has ns-2's default, 3 s).
- Queries: an answer is a new connection, and servers start within 20 us. The next query starts 300
  us after the last ack of the last answer, and queries continue for the whole run (44 to 180 of
  them in 2.6 s). The time of an answer is from its SYN to its last ack. Unfinished queries are not
  counted, and runs without a finished query are left out of mean times (table `queries`).
- All links are equal, as in our runs of ns-2. Packets then arrive simultaneously, and the order in
  which a program handles simultaneous events decides drops; links that differ are a setting.
- RED: the paper does not state the weight of the average, which is decisive. The automatic weight
  (8e-6, a memory of a second) turns RED into DropTail during a burst, while the text describes a
  RED that drops most within a burst. We use 0.002, and others are settings. Gentle, as ns-2's
  default (the paper's text has everything dropped above 51 packets: a setting), otherwise as in
  ns-2 (above 51 packets the slope keeps the first max_p; no drop while at most one packet is in the
  queue).
- CoDel of 2012. Its next drop is `interval / sqrt(count)` after the last scheduled one, as in ns-2
  and RFC 8289; the paper's equation 1 adds this time to the current one.
- Utilisation model: 3 s, the first second not counted, the sender behind 10 Gbit/s; the four flows
  share only the port. Equations 2 to 6 are measured from the window of one flow, twenty samples per
  millisecond.
- Impact of the interval: 40 answers of 50 kB. Short flows: 3 s as in the paper, without the flows
  that have not finished by then (1 % at the highest load).

Settings varied: the pause between queries, the servers' links, TCP's clock, RED's weight and slope,
CoDel's variant. Each runs all queries; those that affect more than queries also run the burst and
the short flows. Loss of claim C8 counts while a query is open.

Open question of the paper (IV): REM, PI, CHOKe, AVQ, Blue, SRED and FRED in its network, with newer
algorithms. One rule scales their parameters (table `open-parameters`). References of the queue and
periods are one base round trip; thresholds of averages are RED's; gains are the published ones
(PI's by its authors' rule for one flow; PIE's times 50, as 15 ms are 50 round trips). Step marking
starts at 20 packets, as DCTCP's authors have it at 1 Gbit/s. Disciplines drop, except with step
marking.

ICTCP, D2TCP, D3 and L2DCT are cited by the paper only, and are not built.

Seeds: 5 (10 for one burst; 3 for the utilisation model, the settings and the open question; 2 for
tables of other changes); the paper says "several times". Quick mode: 3 seeds, shorter runs (0.6 s
of queries), fewer points and settings.
"""

from sojourn_lab.papers.codel_dc import figures, model, open_question, tables
from sojourn_lab.papers.codel_dc.claims import CLAIMS, FACTS
from sojourn_lab.papers.codel_dc.experiments import scenarios
from sojourn_lab.papers.codel_dc.set_up import SetUp
from sojourn_lab.papers.codel_dc.settings import SETTINGS

__all__ = ["CLAIMS", "FACTS", "LEFT_OUT", "REFERENCE", "SETTINGS", "TITLE", "SetUp", "scenarios"]

LEFT_OUT = {
    "2a": "the picture was not available to us, and the text does not describe it",
}

TITLE = "CoDel in data centres"
REFERENCE = "Ismail, Pirzada and Qazi, On the Effectiveness of CoDel in Data Centers"

globals().update(  # figures and tables, in the order of the report
    (name, one)
    for part in (model, figures, open_question, tables)
    for name, one in vars(part).items()
    if hasattr(one, "sojourn_figure")
)
