"""The files of ns-2's results: their scenarios, metrics, and omitted rows with reasons."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import sojourn as sj
from sojourn._util.units import seconds
from sojourn_lab.validation import sessions, systems
from sojourn_lab.validation.cases import File, Metric, Row
from sojourn_lab.validation.systems import RTT_SETS, Table


def tcps(result: sj.Result, group: str = "") -> list[Mapping[str, Any]]:
    """Return the summaries of the TCP flows whose group names start with `group`."""
    flows = result.flows.values()
    return [f for f in flows if f["kind"] == "tcp" and f["group"].startswith(group)]


def wire_mbps(result: sj.Result, flow: Mapping[str, Any]) -> float:
    """Return the goodput of a flow in Mbit/s, headers included, as counted by ns-2's sinks."""
    def_ = next(f for f in result.scenario["flows"] if f["name"] == flow["group"])
    if flow["kind"] == "udp":
        packet = _bytes(def_["source"]["packet"])
        header = 28
    else:
        packet, header = _bytes(def_["tcp"]["packet"]), _bytes(def_["tcp"]["header"])
    return float(flow["goodput_bps"]) * packet / (packet - header) / 1e6


def _bytes(text: str) -> int:
    """Convert a canonical size to bytes."""
    number, unit = text.removesuffix("B"), 1
    if number.endswith("k"):
        number, unit = number[:-1], 1000
    return int(number) * unit


def total_mbps(result: sj.Result, group: str = "") -> float:
    """Return the total goodput of the TCP flows of `group`, in Mbit/s."""
    return sum(wire_mbps(result, flow) for flow in tcps(result, group))


def jain(rates: list[float]) -> float:
    """Return Jain's fairness index."""
    x = np.array(rates)
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def udp_loss(result: sj.Result) -> float:
    """Return the loss rate of all UDP flows together."""
    flows = [f for f in result.flows.values() if f["kind"] == "udp"]
    return float(sum(f["lost_packets"] for f in flows) / sum(f["sent_packets"] for f in flows))


def runs(result: sj.Result, link: str) -> tuple[float, float]:
    """Return the mean length of runs of losses, and the share of runs of length one."""
    counts = np.array(result.links[link]["consecutive_loss"], dtype=float)
    if not counts.sum():
        return float("nan"), float("nan")
    lengths = np.arange(1, len(counts) + 1)
    return float((counts * lengths).sum() / counts.sum()), float(counts[0] / counts.sum())


def data_delay_ms(result: sj.Result, link: str) -> tuple[float, float]:
    """Return mean and standard deviation of the delay of full-sized packets, in ms."""
    log = result.links[link].packet_log
    warm = seconds(result.scenario["warmup"])
    full = (log.fate == 0) & (log.arrived_s >= warm) & (log.size_bytes == log.size_bytes.max())
    delay = (log.left_s - log.arrived_s)[full] * 1e3
    return float(delay.mean()), float(delay.std())


def of_link(key: str, scale: float = 1.0, link: str = "bottleneck") -> Callable[..., float]:
    """Return a function that reads a value from the summary of a link."""
    return lambda result: float(result.links[link][key]) * scale


def drops(result: sj.Result) -> float:
    """Return the number of drops at the bottleneck after the warm-up, as counted by ns-2."""
    after = result.time_s > seconds(result.scenario["warmup"])
    return float(result.links["bottleneck"].series["dropped_packets"][after].sum())


FTP_ONLY = File(
    "hred_ftp_only",
    "Long flows with RTTs of 40 to 200 ms over 45 Mbit/s, a buffer of 300 kB",
    ("q", "n", "qmax", "tcp"),
    lambda seed, row: systems.ftp_only(seed, row["q"], int(row["n"]), int(row["qmax"]), row["tcp"]),
    (
        Metric("qmean_B", "mean queue, B", ".0f", of_link("queue_mean_bytes")),
        Metric("qstd_B", "std of queue, B", ".0f", of_link("queue_std_bytes")),
        Metric("loss", "loss", ".5f", of_link("loss_rate")),
        Metric("util", "utilisation", ".4f", of_link("utilisation"), share=True),
        Metric("ftp_goodput_frac", "goodput/rate", ".4f", lambda r: total_mbps(r) / 45, share=True),
        Metric(
            "jain_ftp", "Jain's index", ".3f", lambda r: jain([wire_mbps(r, f) for f in tcps(r)])
        ),
    ),
    seeds=2 * RTT_SETS,
    rtts="one set",
)

BULK_DATA = File(
    "td_red_ftp",
    "SACK with packets of 1400 to 1628 B and four UDP sources over 10 Mbit/s, a buffer of 300 "
    "packets; TD is DropTail, GRED is gentle RED",
    ("q", "n", "buf", "tcp"),
    lambda seed, row: systems.bulk_data(seed, row["q"], int(row["n"]), int(row["buf"]), row["tcp"]),
    (
        Metric("qmean_p", "mean queue, packets", ".2f", of_link("queue_mean_packets")),
        Metric("qstd_p", "std of queue, packets", ".2f", of_link("queue_std_packets")),
        Metric("delay_ms_mean", "mean delay, ms", ".2f", of_link("sojourn_mean_s", 1e3)),
        Metric("delay_ms_std", "std of delay, ms", ".2f", of_link("sojourn_std_s", 1e3)),
        Metric("loss", "loss", ".5f", of_link("loss_rate")),
        Metric("udp_loss", "loss of UDP", ".5f", udp_loss),
        Metric("util", "utilisation", ".4f", of_link("utilisation"), share=True),
        Metric("goodput_Mbps", "TCP goodput, Mbit/s", ".3f", total_mbps),
        Metric("jain", "Jain's index", ".3f", lambda r: jain([wire_mbps(r, f) for f in tcps(r)])),
        Metric("mean_run", "mean run of losses", ".3f", lambda r: runs(r, "bottleneck")[0]),
        Metric("p1", "runs of one", ".4f", lambda r: runs(r, "bottleneck")[1], share=True),
    ),
)


def _share(name: str) -> Callable[[sj.Result], float]:
    return lambda result: wire_mbps(result, result.flows[name])


def _fair(name: str, flows: int, about: str, left_out: str) -> File:
    each = tuple(
        Metric(
            f"f{i}",
            f"flow {i}, Mbit/s" if i < flows else "UDP, Mbit/s",
            ".4f",
            _share(f"f{i}"),
        )
        for i in range(1, flows + 1)
    )
    return File(
        name,
        about,
        ("topo", "q", "buf"),
        lambda seed, row: systems.fair(seed, row["topo"], row["q"], int(row["buf"])),
        (
            *each,
            Metric(
                "jain",
                "Jain's index",
                ".4f",
                lambda r: jain([wire_mbps(r, f) for f in r.flows.values()]),
                share=True,
            ),
        ),
        used=lambda row: row["q"] in ("DRR", "DropTail"),
        left_out=left_out,
    )


NO_FQ = (
    "ns-2's FQ stamps a packet when it reaches the head of its queue and, at each decision, adds "
    "its length times the number of backlogged queues. This is not the self-clocked algorithm of "
    "its description, and sojourn has none like it; an experiment above shows the nearest"
)
FAIR3 = _fair(
    "drr_wfq_fair3",
    3,
    "Two TCPs and 4 Mbit/s of UDP over 5 Mbit/s, a buffer of 30 kB; 3u: access of 10 and 10 ms, "
    "3v: of 50 and 100 ms",
    NO_FQ + ". ns-2's SFQ drops a packet if its queue holds half as many packets as there is room "
    "for, or more than limit/16 while less than 16 are free, and hashes node addresses, which are "
    "not documented; sojourn has the SFQ of Linux",
)
FAIR5 = _fair(
    "drr_wfq_fair5",
    5,
    "Four TCPs and 2.5 Mbit/s of UDP, each behind an access link of 2.5 Mbit/s, over 10 Mbit/s",
    NO_FQ,
)


def _both_mbps(result: sj.Result) -> float:
    return total_mbps(result, "forward") + wire_mbps(result, result.flows["forward-cbr"])


def _forward_delay(i: int) -> Callable[[sj.Result], float]:
    return lambda result: data_delay_ms(result, "forward")[i]


def _two_way(seed: int, row: Row, hosts: bool = False) -> Table:
    mbps, mtu, buf = (int(row[key]) for key in ("bw_Mbps", "mtu", "buf"))
    return systems.two_way(seed, mbps, mtu, buf, hosts, row["q"])


TWO_WAY = File(
    "drr_dumbbell",
    "Five FTPs and a UDP source in each direction; ACKs share the queue with the data of the other "
    "direction; a buffer of 100 packets (CoDel, in the variant of 2012: 1000)",
    ("q", "bw_Mbps", "mtu", "buf"),
    lambda seed, row: _two_way(seed, row),
    (
        Metric(
            "qmean_p", "mean queue, packets", ".2f", of_link("queue_mean_packets", 1, "forward")
        ),
        Metric("qdelay_ms_mean", "mean delay of data, ms", ".2f", _forward_delay(0)),
        Metric("qdelay_ms_std", "std of delay of data, ms", ".2f", _forward_delay(1)),
        Metric("drops_per_s", "drops per s", ".2f", of_link("dropped_packets", 1 / 80, "forward")),
        Metric("loss", "loss", ".5f", of_link("loss_rate", 1, "forward")),
        Metric("util", "utilisation", ".4f", of_link("utilisation", 1, "forward"), share=True),
        Metric("fwd_goodput_Mbps", "goodput, Mbit/s", ".3f", _both_mbps),
        Metric(
            "jain_fwd",
            "Jain's index",
            ".3f",
            lambda r: jain([wire_mbps(r, f) for f in tcps(r, "forward")]),
        ),
    ),
    used=lambda row: row["q"] != "DRR",
    left_out="ns-2's DRR hashes node addresses into ten queues, and the collisions are not "
    "documented",
)

ONE_FLOW = File(
    "codel_target_util",
    "One SACK flow over 1 Gbit/s under CoDel with an RTT of 300 us and an interval of 750 us. "
    "ns-2 has the CoDel of 2012, sojourn the CoDel of RFC 8289",
    ("q", "target_ms"),
    lambda seed, row: systems.one_flow(seed, float(row["target_ms"])),
    (
        Metric("qmean_p", "mean queue, packets", ".2f", of_link("queue_mean_packets")),
        Metric("qstd_p", "std of queue, packets", ".2f", of_link("queue_std_packets")),
        Metric("drops", "drops in 4 s", ".0f", drops),
        Metric("util", "utilisation", ".4f", of_link("utilisation"), share=True),
    ),
    seeds=5,
)

WITH_SESSIONS = replace(
    FTP_ONLY,
    name="hred_dumbbell",
    about="As `hred_ftp_only`, plus n/12 web sessions per second of ten transfers each; REDng is "
    "RED without gentle, Vq is AVQ",
    scenario=lambda seed, row: sessions.with_sessions(
        seed, row["q"], int(row["n"]), int(row["qmax"]), row["tcp"]
    ),
    metrics=(
        *(m for m in FTP_ONLY.metrics if m.column not in ("ftp_goodput_frac", "jain_ftp")),
        Metric(
            "ftp_goodput_frac",
            "long flows' goodput/rate",
            ".4f",
            lambda r: total_mbps(r, "ftp") / 45,
            share=True,
        ),
        Metric(
            "jain_ftp",
            "Jain's index of long flows",
            ".3f",
            lambda r: jain([wire_mbps(r, f) for f in tcps(r, "ftp")]),
        ),
        Metric("web_done", "transfers in 50 s", ".0f", sessions.web_done),
        Metric("web_fct_s", "mean transfer time, s", ".3f", sessions.web_fct_s),
    ),
)


def _answers(*more: Metric) -> tuple[Metric, ...]:
    """Return the metrics of short flows through a switch."""
    return (
        Metric("afct_ms", "mean flow time, ms", ".3f", lambda r: sessions.answers_ms(r).mean()),
        Metric("p50_ms", "median, ms", ".3f", lambda r: np.quantile(sessions.answers_ms(r), 0.5)),
        Metric("p99_ms", "99 %, ms", ".3f", lambda r: np.quantile(sessions.answers_ms(r), 0.99)),
        *more,
        Metric("util", "utilisation", ".4f", of_link("utilisation", 1, "port"), share=True),
        Metric("loss", "loss", ".5f", of_link("loss_rate", 1, "port")),
        Metric("qmean_p", "mean queue, packets", ".2f", of_link("queue_mean_packets", 1, "port")),
        Metric("qstd_p", "std of queue, packets", ".2f", of_link("queue_std_packets", 1, "port")),
    )


INCAST = File(
    "codel_dc_incast",
    "Twenty queries to 40 servers at 1 Gbit/s, skb kB from each, next to a long flow; RED is "
    "adaptive, wq -1 is its automatic weight",
    ("q", "skb", "n", "wq"),
    lambda seed, row: sessions.queries(
        seed, row["q"], float(row["skb"]), int(row["n"]), float(row["wq"])
    ),
    _answers(
        Metric(
            "qct_ms",
            "mean query time, ms",
            ".3f",
            lambda r: float(r.queries["duration_s"].mean() * 1e3),
        )
    ),
)
VARY = replace(
    INCAST,
    name="codel_dc_vary",
    about="As `codel_dc_incast`, with 1000 kB in total from 8 to 128 servers",
)
POISSON = File(
    "codel_dc_poisson",
    "Flows of 2 to 98 kB with random arrivals through the same switch, for three seconds",
    ("q", "load", "n", "wq"),
    lambda seed, row: sessions.poisson(
        seed, row["q"], float(row["load"]), int(row["n"]), float(row["wq"])
    ),
    _answers(),
)

_OF_SWITCH = tuple(
    m for m in INCAST.metrics if m.column in "afct_ms p50_ms p99_ms qct_ms util loss".split()
)
AGAIN = replace(
    INCAST,
    name="reruns/switch_told",
    about="Queries as in `codel_dc_incast` and `codel_dc_vary`; the agents of ns-2 are reset for "
    "every query",
    metrics=_OF_SWITCH,
)
SPREAD = replace(
    AGAIN,
    name="reruns/switch",
    about="As `reruns/switch_told`, with propagation times that grow by 137 ns from server to "
    "server, so that no two packets arrive at the same instant",
    scenario=lambda seed, row: sessions.queries(
        seed, row["q"], float(row["skb"]), int(row["n"]), float(row["wq"]), spread_ns=137
    ),
)

DESCRIBED = (
    FTP_ONLY,
    WITH_SESSIONS,
    BULK_DATA,
    FAIR3,
    FAIR5,
    TWO_WAY,
    ONE_FLOW,
    INCAST,
    VARY,
    POISSON,
)
"""Files with their documented set-ups."""


def _some(file: File, columns: str, **changes: Any) -> File:
    """Return `file` with only these columns."""
    metrics = tuple(m for m in file.metrics if m.column in columns.split())
    return replace(file, metrics=metrics, left_out="", **changes)


def _no_log(file: File) -> Callable[[int, Row], Table]:
    """Return the scenario function of `file` without the packet log, which other metrics need."""
    return lambda seed, row: file.scenario(seed, row) | {"packet_log": False}


TRUNK = replace(
    BULK_DATA,
    changed="one more link",
    used=lambda row: row["q"] == "TD",
    scenario=lambda seed, row: systems.bulk_data(
        seed, row["q"], int(row["n"]), int(row["buf"]), row["tcp"], trunk=True
    ),
)
HOSTS = replace(
    TWO_WAY,
    changed="receivers on the hosts",
    left_out="",
    scenario=lambda seed, row: _two_way(seed, row, hosts=True),
)
FORM = replace(
    ONE_FLOW,
    about="One SACK flow over 1 Gbit/s under CoDel with an RTT of 300 us and an interval of 750 us",
    changed="CoDel of 2012",
    scenario=lambda seed, row: systems.one_flow(seed, float(row["target_ms"]), "ns2_v1"),
)
CHANGED = (TRUNK, HOSTS, FORM)
"""Files whose numbers indicate another set-up than the documented one."""

OF_BULK = "qmean_p qstd_p delay_ms_mean delay_ms_std loss udp_loss goodput_Mbps jain"
OF_TWO_WAY = "drops_per_s loss util qmean_p fwd_goodput_Mbps jain_fwd"

RERUN = (
    _some(FTP_ONLY, "qmean_B qstd_B loss util", name="reruns/ftp_only", rtts="the same"),
    _some(
        FTP_ONLY,
        "qmean_B qstd_B loss util",
        name="reruns/ftp_only_laws",
        about="Long flows with RTTs of 40 to 200 ms over 45 Mbit/s, a buffer of 300 kB, under the "
        "AQMs of the HRED paper, configured as there",
        rtts="the same",
    ),
    _some(BULK_DATA, OF_BULK, name="reruns/bulk_data", seeds=20),
    _some(TRUNK, OF_BULK, name="reruns/bulk_data_trunk", seeds=20),
    _some(FAIR3, "f1 f2 f3 jain", name="reruns/fair", seeds=40),
    _some(FAIR5, "f1 f2 f3 f4 f5 jain", name="reruns/fair5", seeds=20),
    _some(TWO_WAY, OF_TWO_WAY, name="reruns/two_way", scenario=_no_log(TWO_WAY), seeds=20),
    _some(
        HOSTS,
        OF_TWO_WAY,
        name="reruns/two_way_hosts",
        scenario=_no_log(HOSTS),
        seeds=20,
    ),
    AGAIN,
    SPREAD,
)
"""Our own runs of ns-2, with fully known set-ups (`validation/ns2`)."""

FILES = DESCRIBED + CHANGED + RERUN

ABSENT: dict[str, str] = {}
"""Files of which no row can be compared, with the reason."""
