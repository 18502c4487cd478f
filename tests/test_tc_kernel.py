"""Exported lines are accepted by tc and the kernel, and read back as the same parameters."""

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _sojourn
from sojourn_lab.validation.linux import user_mode
from support import uml

uml.require()

ABSENT = {"fq_pie", "dualpi2", "ets"}
"""Qdiscs that this kernel, or this tc, is built without: only tc itself reads their lines."""

RATE = "20mbit"

DISCIPLINES = [
    *(
        "droptail",
        "droptail(limit=100kB)",
        "droptail(limit=20p, policy=head)",
        "prio",
        "prio(flows=5)",
    ),
    *("red(limit=400kB, min_th=30kB, max_th=90kB, packet=1kB, w_q=0.002)", "red", "ared", "choke"),
    *("red(ecn=true, hard_drop=true, max_p=0.05)", "ared(min_th=20kB, max_th=60kB)"),
    *("choke(limit=300p, ecn=true)", "sfq", "sfq(limit=3000p, flows=2048, depth=100, perturb=10s)"),
    *("sfq(drop=head)", "sfb", "sfb(bin_size=40, max=60, d1=0.01, d2=0.001)", "codel", "fq_codel"),
    *("codel(limit=200p, target=20ms, interval=300ms, ecn=true)", "pie", "fq_pie", "drr", "qfq"),
    *("fq_codel(limit=1000p, flows=64, quantum=300B, drop_batch=1, ecn=false)",),
    *("pie(target=20ms, t_update=30ms, alpha=0.25, beta=1.5, ecn=true)",),
    *("pie(latency=rate, byte_mode=true)", "fq_pie(flows=16, ecn=true, mark_ecnth=0.2)"),
    *("tbf(rate=5mbit)", "tbf(rate=5mbit, limit=40kB, burst=3kB, peakrate=9mbit, mtu=2kB)"),
    *("ets(strict=2, flows=4, quanta=3kB 2kB)", "pfifo_fast", "hhf", "fq", "fq(maxrate=2mbit)"),
    "hhf(limit=500p, quantum=3kB, admit_bytes=100kB)",
    *("skbprio", "skbprio(limit=200p)", "cbs", "cbs(idleslope=2mbit, locredit=1kB, hicredit=0B)"),
    *("cake", "cake(bandwidth=20mbit)", "cake(bandwidth=5mbit, overhead=docsis, ack_filter=on)"),
    "cake(bandwidth=1gbit, autorate_ingress=true, tins=besteffort, isolation=flowblind)",
    "cake(bandwidth=8mbit, tins=diffserv8, isolation=dual_srchost, overhead='-4 mpu 64 atm')",
    "cake(tins=precedence, isolation=hosts, ingress=true, ack_filter=aggressive, rtt=50ms)",
    "cake(bandwidth=1mbit, tins=diffserv4, wash=true, overhead='32 ptm', limit=4MiB, rtt=lan)",
    "gred",
    "gred(grio=true, prio='1 2 3', vqs='0 5 9', ecn='true false', hard_drop='false true')",
    "gred(vqs='3', default=3, min_th=20kB, max_th=20kB, limits=50kB, unassigned_limit=60kB)",
    "fq(limit=500p, flow_limit=50, quantum=2kB, initial_quantum=9kB, ce_threshold=1ms)",
]


def _random(count: int) -> list[str]:
    """Return disciplines with random parameters that tc can express."""
    draw = random.Random(19)
    lines = []
    for _ in range(count):
        limit = draw.randint(2, 20_000)
        us = draw.randint(1, 900) * 100
        lines += [
            f"codel(limit={limit}p, target={us}us, interval={10 * us}us)",
            f"fq_codel(limit={limit}p, flows={draw.randint(1, 65_536)}, target={us}us)",
            f"pie(limit={limit}p, target={us}us, alpha={draw.randint(1, 32) / 16})",
            f"sfq(limit={limit % 4000 + 2}p, flows={1 << draw.randint(0, 16)})",
            f"red(limit={limit + 100}kB, min_th={limit}kB, max_th={2 * limit}kB, "
            f"w_q={0.5 ** draw.randint(6, 9)}, packet=1kB)",
            f"choke(limit={limit + 100}p, min_th=50p, max_th=90p, max_p=0.1)",
            f"sfb(limit={limit}p, max={draw.randint(20, 900)}, d1={draw.randint(1, 99) / 1000})",
            f"droptail(limit={limit}p)",
            f"droptail(limit={limit}B)",
            f"prio(flows={draw.randint(2, 16)})",
        ]
    return lines


def _links() -> dict[str, dict[str, Any]]:
    """Return links with every property that tc can express."""
    bursts = {"p": 0.01, "r": 0.25, "1-h": 0.8, "1-k": 0.001}
    return {
        "plain": {"rate": "20mbit", "qdisc": "fq_codel"},
        "far": {"rate": "1mbit", "delay": "35ms", "qdisc": "codel"},
        "lossy": {"rate": "800kbit", "delay": "1500us", "loss": 0.01, "qdisc": "pie"},
        "bursty": {"rate": "2gbit", "loss": bursts, "qdisc": "droptail(limit=50p)"},
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    """Each script with the exit code of its worst command, and the qdiscs that the kernel shows."""
    scripts = [
        sj.tc.export(one, dev="dum0", rate=RATE) for one in DISCIPLINES + _random(4 * uml.SEEDS)
    ]
    scripts += [sj.tc.export(sj.Link(**link), dev="dum0") for link in _links().values()]
    parts = []
    for number, script in enumerate(scripts):
        lines = [line for line in script.splitlines() if not line.startswith("#")]
        parts += [f"echo '== {number}'", "worst=0"]
        parts += [f"{line} </dev/null || worst=$?" for line in lines]
        parts += ["echo exit $worst", "tc -d -j qdisc show </dev/null"]
        parts += ["echo", "tc class show dev dum0 </dev/null"]
        parts.append("tc qdisc del dev dum0 root 2>/dev/null")
    out = user_mode.run("\n".join(parts), tmp_path_factory.mktemp("uml"))
    outputs = re.findall(r"^== (\d+)\n(.*?)(?=^== |\Z)", out, re.MULTILINE | re.DOTALL)
    assert len(outputs) == len(scripts), out[-2000:]
    return [
        (scripts[int(number)], int(re.findall(r"^exit (\d+)", text, re.MULTILINE)[0]), text)
        for number, text in outputs
    ]


def _kind(script: str) -> str:
    """Return the qdisc of the last line."""
    words = shlex.split(script.splitlines()[-1])
    return words[words.index("handle") + 2]


def _shown(text: str) -> str:
    """Return the JSON in an output."""
    return next(line for line in text.splitlines() if line.startswith("[{"))


def test_every_line_is_accepted(answers: list[tuple[str, int, str]]) -> None:
    """By tc and by the kernel; a qdisc that the kernel lacks is refused only as unknown."""
    accepted = 0
    for script, code, text in answers:
        if _kind(script) in ABSENT:
            assert "qdisc kind is unknown" in text, f"{script}\n{text}"
            continue
        assert code == 0, f"{script}\n{text}"
        accepted += 1
    assert accepted >= 90


def test_every_line_reads_back_as_the_same_parameters(
    answers: list[tuple[str, int, str]],
) -> None:
    """Up to the kernel's clocks: CoDel's 1.024 us, PIE's ticks, SFB's 16 bits."""
    compared = 0
    for script, _, text in answers:
        if _kind(script) in ABSENT:
            continue
        words = script.splitlines()[-1].split("handle", 1)[1].split(maxsplit=1)[1]
        if _kind(script) == "gred":  # a command per virtual queue
            words = "\n".join(line for line in script.splitlines() if line[0] != "#")
        sent = json.loads(_sojourn.tc_parse(words))["qdisc"]
        back = sj.tc.imported(_as_lines(_shown(text)) + _classes(text))
        if _kind(script) == "tbf":  # imported as the rate of the link
            assert back[0]["rate"] == sent["rate"], script
            continue
        qdisc = back[0]["qdisc"]
        assert qdisc["name"] == sent["name"], script
        for key, value in sent.items() | qdisc.items():
            if key in ("packet", "bandwidth") or (qdisc["name"] == "pie" and key == "t_update"):
                continue  # not shown, or shown in ticks of the kernel
            _same(script, key, sent.get(key), qdisc.get(key), value)
        compared += 1
    assert compared >= 80


def _classes(text: str) -> str:
    """Return the lines of classes of htb, which `tc qdisc show` does not list."""
    return "".join(f"\n{line}" for line in text.splitlines() if line.startswith("class htb"))


def _as_lines(shown: str) -> str:
    """Return JSON of tc as lines; a tree of several qdiscs also needs their classes."""
    entries = [entry for entry in json.loads(shown) if entry.get("dev") == "dum0"]
    lines: str = _sojourn.tc_lines(json.dumps(entries))
    return lines


def _same(script: str, key: str, sent: Any, back: Any, value: Any) -> None:
    if key in SFB_DEFAULTS:
        numbers = (SFB_DEFAULTS[key] if one is None else float(one) for one in (sent, back))
        sent, back = (round(number * 65_535) for number in numbers)
    if key in ("target", "ce_threshold") and None not in (sent, back):
        assert abs(_us(sent, key) - _us(back, key)) <= 2, f"{script}: {key}"
        return
    if key in ("target", "interval") and "codel" in script:
        sent, back = (round(_us(one, key)) for one in (sent, back))
        assert abs(sent - back) <= 2, f"{script}: {key}"
        return
    assert sent == back, f"{script}: {key} = {value}: {sent} sent, {back} read"


SFB_DEFAULTS = {"d1": 0.001, "d2": 0.000166667}
"""Probabilities that are at sojourn's default and so not named."""

DEFAULT_US = {"target": 5_000, "interval": 100_000}
"""Times that are at CoDel's default and so not named."""


def _us(text: str | None, key: str) -> float:
    if text is None:
        return DEFAULT_US[key]
    match = re.fullmatch(r"(\d+)(us|ms|s)", text)
    assert match, text
    return int(match[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[match[2]]


def test_a_wrong_line_is_refused(tmp_path: Path) -> None:
    """The kernel does read the lines."""
    out = user_mode.run("tc qdisc add dev dum0 root codel limit 1k; echo exit $?", tmp_path)
    assert "exit 1" in out
    assert "Illegal" in out
