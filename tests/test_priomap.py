"""Bands by DSCP, as Linux chooses them, in scenarios, comparisons and tc lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _sojourn
from sojourn.cli import main as cli
from sojourn.scenario.advice import PRIOMAP, warnings_of
from sojourn.scenario.draft import canonical

LINUX = "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"
EF_FIRST = "1 1 1 1 0 1 0 0 1 1 1 1 1 1 1 1"
"""Priority 4, interactive bulk, in the first band: the last three bits of EF are 110."""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its exit code and outputs."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        out, error = capsys.readouterr()
        return code, out, error

    return call


def voice(qdisc: Any, dscp: str = "EF") -> dict[str, Any]:
    """Return a voice call of this DSCP with bulk flows of best effort."""
    return {
        "duration": "8s", "warmup": "2s",
        "links": {"b": {"rate": "10mbit", "delay": "20ms", "qdisc": qdisc}},
        "flows": [
            {"name": "voice", "path": ["b"], "rtt": "40ms", "dscp": dscp,
             "source": {"name": "cbr", "rate": "100kbit", "packet": "200B"}},
            {"name": "bulk", "count": 4, "path": ["b"], "rtt": "40ms", "tcp": "cubic"},
        ],
    }  # fmt: skip


def delay_s(tree: dict[str, Any]) -> float:
    """Return the 99th percentile of the delay of the call, which must not be starved."""
    call = sj.simulate(tree).flows["voice"]
    assert call.received_packets > 300, "not starved"
    return float(call.delay_p99_s)


@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")
def test_ef_is_in_the_band_of_linux() -> None:
    """It shares the second band with best effort, as in pfifo_fast; AF42 is before both."""
    for qdisc in ("prio(limit=3000p, limits=1000p, drop=tail)", "pfifo_fast", "tc: prio"):
        assert delay_s(voice(qdisc)) > 0.05, "behind the queue of the bulk flows"
        assert delay_s(voice(qdisc, "AF42")) < 0.025
    fast, prio = (sj.simulate(voice(q)).flows["voice"] for q in ("pfifo_fast", "tc: prio"))
    assert fast.delay_mean_s == prio.delay_mean_s, "the same bands, packet by packet"


def test_a_priomap_chooses_the_band() -> None:
    """By a parameter and by a word of tc."""
    for qdisc in (f"tc: prio priomap {EF_FIRST}", {"name": "prio", "priomap": EF_FIRST}):
        assert delay_s(voice(qdisc)) < 0.025
        assert warnings_of(canonical(voice(qdisc))) == []


def test_without_a_map_a_class_is_a_band() -> None:
    """`class` is the number of a band."""
    tree = voice({"name": "prio", "priomap": ""})
    del tree["flows"][0]["dscp"]
    tree["flows"][0]["class"], tree["flows"][1]["class"] = 0, 1
    assert delay_s(tree) < 0.025
    tree["flows"][0]["class"], tree["flows"][1]["class"] = 1, 0
    with pytest.raises(AssertionError, match="not starved"):
        delay_s(tree)


def test_a_priomap_is_kept(run: Run, tmp_path: Path) -> None:
    """In run, compare, import, export and diff."""
    line = f"tc: prio bands 3 priomap {EF_FIRST}"
    result = sj.simulate(voice(line))
    assert result.scenario["links"]["b"]["qdisc"]["priomap"] == EF_FIRST
    runs = sj.compare(voice("droptail"), {"ef": line, "linux": "pfifo_fast"})
    [one] = list(runs["ef"])
    assert one.scenario["links"]["b"]["qdisc"]["priomap"] == EF_FIRST
    model = sj.tc.parse(line)
    assert isinstance(model, sj.qdisc.Prio)
    assert f"prio priomap {EF_FIRST}" in sj.tc.export(model)
    assert "priomap" not in sj.tc.export(sj.tc.parse("prio")), "the default of tc"

    script = tmp_path / "setup.sh"
    script.write_text(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 9mbit\n"
        f"tc qdisc add dev eth0 parent 1:10 prio bands 3 priomap {EF_FIRST}\n"
    )
    code, out, error = run("tc", "import", str(script))
    assert (code, error) == (0, "")
    assert EF_FIRST in out
    assert "lost" not in out
    code, out, _ = run("tc", "diff", f"prio priomap {EF_FIRST}", "prio", "--json")
    assert code == 1
    assert json.loads(out)["priomap"] == [EF_FIRST, LINUX]


def test_a_map_of_fewer_bands_is_exported_as_it_acts() -> None:
    """Linux refuses entries of bands that do not exist; here they mean the last band."""
    text = sj.tc.export(sj.qdisc.Prio(flows=2, limits="1000p", limit="2000p", drop="tail"))
    assert "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1" in text
    text = sj.tc.export(sj.tc.parse("ets bands 4 strict 2 priomap 0 1 2"))
    assert "priomap 0 1 2 3 3 3 3 3 3 3 3 3 3 3 3 3" in text


def test_more_than_16_priorities_are_refused() -> None:
    """The message has the path."""
    with pytest.raises(sj.InputError, match=r"links\.b\.qdisc\.priomap: 17 bands"):
        sj.simulate(voice({"name": "prio", "priomap": "0 " * 17}))


def test_the_map_of_warnings_is_that_of_the_discipline() -> None:
    """The two tables agree."""
    [prio] = [s for s in json.loads(_sojourn.specs())["disciplines"] if s["name"] == "prio"]
    [default] = [row["value"] for row in prio["params"] if row["name"] == "priomap"]
    assert default == LINUX == " ".join(map(str, PRIOMAP))


VARIANTS = {
    "codel": "codel",
    "fq_codel": "fq_codel",
    "pie": "pie",
    "fq_pie": "fq_pie",
    "red": "red limit 400000 avpkt 1000",
    "ared": "red limit 400000 avpkt 1000 adaptive",
    "choke": "choke limit 1000 bandwidth 10mbit",
    "sfb": "sfb",
    "sfq": "sfq",
    "dualpi2": "dualpi2",
}
"""A tc line for each discipline with a variant of Linux."""


def test_every_discipline_with_a_variant_of_linux_has_a_line_here() -> None:
    """Except COBALT, which Linux has in cake alone, and combinations that Linux does not have."""
    names = set()
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        kinds = {row["name"]: row["kind"] for row in spec["params"]}
        if "linux" not in kinds.get("variant", "").split("|"):
            continue
        try:
            sj.tc.export({"name": spec["name"], "variant": "linux"})
        except sj.InputError:
            continue
        names.add(spec["name"])
    assert names == set(VARIANTS)


@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")
@pytest.mark.parametrize("name", VARIANTS)
def test_tc_words_give_the_variant_of_linux(name: str, run: Run, tmp_path: Path) -> None:
    """As a line in TOML, in Python, on the command line, and imported from commands."""
    line = VARIANTS[name]
    model = sj.tc.parse(line)
    assert getattr(model, "variant", None) == "linux"
    toml = tmp_path / "case.toml"
    flow = '[[flows]]\nname = "f"\npath = ["l"]\n'
    toml.write_text(f'duration = "1s"\n[links.l]\nrate = "9mbit"\nqdisc = "tc: {line}"\n{flow}')
    qdisc = sj.simulate(sj.load(toml)).scenario["links"]["l"]["qdisc"]
    assert (qdisc["name"], qdisc["variant"]) == (name, "linux")
    code, out, _ = run("run", str(toml), "--qdisc", f"tc: {line}", "--json")
    qdisc = json.loads(out)["scenario"]["links"]["l"]["qdisc"]
    assert (code, qdisc["variant"]) == (0, "linux")
    script = tmp_path / "setup.sh"
    script.write_text(f"tc qdisc add dev l root handle 1: {line}\n")
    code, out, _ = run("tc", "import", str(script), "--rate", "9mbit")
    assert code == 0
    toml.write_text(f'duration = "1s"\n{out}\n{flow}')
    qdisc = sj.simulate(sj.load(toml)).scenario["links"]["l"]["qdisc"]
    assert (qdisc["name"], qdisc["variant"]) == (name, "linux")
