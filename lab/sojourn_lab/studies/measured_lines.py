"""Measure random lines with known truth on real packets, and write reports/measured-lines.md.

`make measured-lines` runs `sojourn line measure` behind `sojourn link` for each of 30 lines: rates,
round-trip time and buffers as set are compared with the measured ones. It needs root, ping, iperf3
and /dev/net/tun. Each line has a network namespace of its own, so some run at the same time.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

from sojourn_lab import ROOT

PAGE = ROOT / "reports/measured-lines.md"

LINES = 30

FAR = "198.18.0.1"
"""Address of the far end of a link, where the server runs."""

RATE_WITHIN, BUFFER_WITHIN = 0.05, 0.2
"""Errors within which rates and buffers are to be found."""

QUANTITIES = ("down_bps", "up_bps", "down_buffer_s", "up_buffer_s", "rtt_s")
"""Quantities that are compared."""

UNTRUE = "not to be trusted"
"""Words of `sojourn link` about a machine that did not keep up."""

ATTEMPTS = 3
"""Attempts of a line on a machine that does not keep up."""

NOTE = (
    "A buffer that is found much too small was not full: four transfers that have not lost a",
    "packet grow slowly, and need a longer load (`--seconds 60`). Round-trip times have the",
    "transmission of the ping in addition, 0.7 ms at 1 Mbit/s.",
)
"""Causes of the errors."""

Truth = dict[str, float]


def truth(seed: int) -> Truth:
    """Return the rates, the round-trip time and the buffers of a random line."""
    rng = random.Random(f"measured line {seed}")
    down = 10 ** rng.uniform(0.4, 1.1) * 1e6
    return {
        "down_bps": down,
        "up_bps": max(1e6, down / rng.choice([1, 2, 4, 8])),
        "rtt_s": rng.uniform(0.008, 0.06),
        "down_buffer_s": rng.uniform(0.06, 0.15),
        "up_buffer_s": rng.uniform(0.08, 0.2),
    }


def measured(line: Truth, seconds: int) -> dict[str, Any]:
    """Return what `sojourn line measure` says of a line, in the namespace of this process."""
    options = []
    for way, word in (("up", "--up"), ("down", "--down")):
        limit = round(line[f"{way}_bps"] * line[f"{way}_buffer_s"] / 8)
        for key, text in (("rate", f"{line[f'{way}_bps']:.0f}bit"),
                          ("delay", f"{line['rtt_s'] / 2 * 1e6:.0f}us"),
                          ("qdisc", f"droptail(limit={limit}B)")):  # fmt: skip
            options += [word, f"{key}={text}"]
    here = [sys.executable, "-m", "sojourn"]
    words = ["line", "measure", "--to", FAR, "--seconds", str(seconds), "--json"]
    server = subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL)
    try:
        done = subprocess.run(
            [*here, "link", *options, "--", *here, *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        server.kill()
        server.wait()
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    text = done.stdout
    tree: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("\n}") + 2])
    return {**tree, "kept_up": UNTRUE not in text + done.stderr}


def in_namespace(seed: int, seconds: int) -> dict[str, Any]:
    """Return the truth of a line, and its measurement in a network namespace of its own."""
    words = [sys.executable, "-m", __spec__.name, "--one", str(seed), "--seconds", str(seconds)]
    script = 'ip link set lo up && exec "$@"'
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", script, "sh", *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"line {seed}: {done.stderr.strip()}")
        tree: dict[str, Any] = json.loads(done.stdout)
        if tree["kept_up"]:
            break
    return tree


def errors(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the relative errors of each quantity."""
    return {
        name: [row["measured"][name]["value"] / row["truth"][name] - 1 for row in rows]
        for name in QUANTITIES
    }


def page(rows: Sequence[Mapping[str, Any]], seconds: int) -> list[str]:
    """Return the lines of the page."""
    deviations = errors(rows)
    lines = ["# Measured lines with known truth", ""]
    lines += [
        f"`sojourn line measure` behind `sojourn link`, on {len(rows)} random lines: real ping and",
        "iperf3 over real packets. The truth is the setting of the link: rates, propagation, and",
        f"drop-tail buffers. {seconds} s idle, {seconds} s download, {seconds} s upload.",
        "",
        "| quantity | within | lines within | median error | largest error |",
        "|---|---|---|---|---|",
    ]
    for name, values in deviations.items():
        limit = BUFFER_WITHIN if "buffer" in name else RATE_WITHIN
        inside = sum(abs(one) <= limit for one in values)
        worst = max(values, key=abs)
        lines.append(
            f"| `{name}` | {limit:.0%} | {inside} of {len(values)} | {median(values):+.1%} | "
            f"{worst:+.1%} |"
        )
    busy = [str(row["seed"]) for row in rows if not row["kept_up"]]
    if busy:
        lines += ["", f"The machine did not keep up in {ATTEMPTS} attempts at: {', '.join(busy)}."]
    lines += ["", *NOTE, "", "| line | download | upload | round trip | buffer down | buffer up |"]
    lines += ["|---|---|---|---|---|---|"]
    for row in rows:
        cells = [_cell(row, name) for name in ("down_bps", "up_bps", "rtt_s", "down_buffer_s",
                                               "up_buffer_s")]  # fmt: skip
        lines.append(f"| {row['seed']} | {' | '.join(cells)} |")
    lines += ["", "Each cell: truth, measured.", ""]
    lines += ["<!-- GENERATED by sojourn_lab.studies.measured_lines (`make measured-lines`). -->"]
    return [*lines, ""]


def _cell(row: Mapping[str, Any], name: str) -> str:
    scale, unit = (1e6, "Mbit/s") if name.endswith("bps") else (1e-3, "ms")
    ends = (row["truth"][name], row["measured"][name]["value"])
    return ", ".join(f"{one / scale:.3g}" for one in ends) + f" {unit}"


def main(words: Sequence[str] | None = None) -> None:
    """Measure the lines, and write the page; `--one SEED` measures one here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--one", type=int)
    options = parser.parse_args(words)
    if options.one is not None:
        line = truth(options.one)
        tree = measured(line, options.seconds)
        kept = tree.pop("kept_up")
        print(json.dumps({"seed": options.one, "truth": line, "measured": tree, "kept_up": kept}))
        return
    seeds = range(1, options.lines + 1)
    with ThreadPoolExecutor(options.parallel) as pool:
        rows = []
        for row in pool.map(lambda seed: in_namespace(seed, options.seconds), seeds):
            rows.append(row)
            shown = {name: f"{values[-1]:+.1%}" for name, values in errors(rows).items()}
            print(row["seed"], shown, "" if row["kept_up"] else "(did not keep up)", flush=True)
    PAGE.write_text("\n".join(page(rows, options.seconds)), encoding="utf-8")


if __name__ == "__main__":
    main()
