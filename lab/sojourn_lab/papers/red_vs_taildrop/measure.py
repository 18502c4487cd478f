"""Measure of the runs of `red_vs_taildrop`."""

from typing import Any

from sojourn._util.units import bps_of, bytes_of, seconds
from sojourn.result.result import Result


def measure(result: Result) -> dict[str, Any]:
    """Keep goodput, UDP's loss, delay, loss runs, open connections, RED's parameters.

    Goodput counts packets delivered once and in order, with headers of 40 bytes. `left_mbps` is the
    rate of the bottleneck less what it delivers of UDP.
    """
    import numpy as np

    link, described = result.links["bottleneck"], result.scenario["links"]["bottleneck"]
    udp = [f for f in result.flows.values() if f.kind == "udp"]
    runs = np.asarray(link.consecutive_loss, dtype=float)
    lengths = np.arange(1, len(runs) + 1)
    events = max(1.0, runs.sum())
    begin, end = (seconds(result.scenario[key]) for key in ("warmup", "duration"))
    udp_loss = sum(f.lost_packets for f in udp) / sum(f.sent_packets for f in udp)
    offered = sum(
        bps_of(f["source"]["rate"]) * f["count"] for f in result.scenario["flows"] if "tcp" not in f
    )
    kept = {
        "goodput_mbps": goodput(result),
        "left_mbps": (bps_of(described["rate"]) - offered * (1 - udp_loss)) / 1e6,
        "udp_loss": udp_loss,
        "loss": link.loss_rate,
        "utilisation": link.utilisation,
        "delay_s": link.sojourn_mean_s,
        "delay_std_s": link.sojourn_std_s,
        "queue_packets": link.queue_mean_packets,
        "buffer_packets": float(described["qdisc"]["limit"].removesuffix("p")),
        "runs": runs.tolist(),
        "run_mean": float((runs * lengths).sum() / events),
        "runs_of_2": float(runs[1:].sum() / events),
        "runs_of_10": float(runs[9:].sum() / events),
    }
    done = result.completions
    if len(done["start_s"]):
        open_s = np.minimum(done["start_s"] + done["duration_s"], end)
        kept["active"] = float(np.clip(open_s - np.maximum(done["start_s"], begin), 0, None).sum())
        kept["active"] /= end - begin
    if "gauge_avg" in link.series:
        kept["average_packets"] = float(link.series.gauge_avg[int(begin) :].mean())
        for key in ("min_th", "max_th"):
            if key in described["qdisc"]:
                kept[key] = float(described["qdisc"][key].removesuffix("p"))
    if "gauge_p0" in link.series:
        kept |= {k: float(link.series[f"gauge_{k}"][-1]) for k in ("max_p", "w_q", "B")}
        kept |= {k: float(link.series[f"gauge_{k}"][-1]) for k in ("min_th", "max_th")}
    return kept


def goodput(result: Result, of: str = "", without: str = "back") -> float:
    """Return the goodput (Mbit/s, with headers) of the TCP groups whose names begin and end so.

    `of` is a part of the name; groups whose name begins with `without` do not count.
    """
    sizes = {f["name"]: f["tcp"]["packet"] for f in result.scenario["flows"] if "tcp" in f}
    wire = {name: bytes_of(size) for name, size in sizes.items()}
    each = (
        f.goodput_bps * wire[f.group] / (wire[f.group] - 40) / 1e6
        for f in result.flows.values()
        if f.kind == "tcp" and of in f.group and not f.group.startswith(without)
    )
    return float(sum(each))


def measure_two_way(result: Result) -> dict[str, Any]:
    """Keep `measure` of the forward direction, and goodput and delay of the other one."""
    back = result.links["back"]
    return measure(result) | {
        "goodput_back_mbps": goodput(result, "back", "ftp"),
        "delay_back_s": back.sojourn_mean_s,
        "utilisation_back": back.utilisation,
    }


def measure_profile(result: Result) -> dict[str, Any]:
    """Keep `measure`, and goodput and UDP's loss of the flows in profile and of the others."""
    kept = measure(result)
    for name, number in (("in", 1), ("out", 0)):
        kept[f"goodput_{name}_mbps"] = goodput(result, f"-{name}")
        udp = [
            f for f in result.flows.values() if f.kind == "udp" and int(f.group[4:]) % 2 == number
        ]
        lost = sum(f.lost_packets for f in udp)
        kept[f"udp_loss_{name}"] = lost / sum(f.sent_packets for f in udp)
    return kept
