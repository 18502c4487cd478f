"""Access lines by name: in scenarios, on the command line, and with real packets."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from conftest import Command
from live_link import FAR, link, python, summary_of
from sojourn import InputError
from sojourn.cli.link_options import links_of
from sojourn.scenario.draft import canonical
from sojourn.scenario.lines import lines
from sojourn.scenario.parsing import read_value

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/lines.md"
NAMES = [line["name"] for line in lines()]


def case(name: str, **more: Any) -> dict[str, Any]:
    """Return a scenario of a download over the line called `name`."""
    flow = {"name": "download", "path": ["down"], "return_path": ["up"]}
    return {"line": name, "duration": "10s", "flows": [flow], **more}


def test_the_lines_of_the_command_are_there() -> None:
    """Documentation and scripts use these names."""
    assert NAMES == ["lte", "starlink", "dsl", "cable", "satellite", "datacentre"]


@pytest.mark.parametrize("name", NAMES)
def test_a_line_is_simulated(name: str) -> None:
    """Two runs give the same bytes; the canonical form has the links in place of the name."""
    tree = canonical(case(name))
    assert "line" not in tree
    assert set(tree["links"]) == {"down", "up"}
    assert canonical(tree) == tree
    first, second = (sj.simulate(case(name, duration="3s")) for _ in range(2))
    assert first.summary == second.summary
    assert first.links["down"].departed_packets > 0


def test_seeds_have_rates_of_their_own() -> None:
    """A longer run begins like a shorter one; another seed does not."""

    def arrived(duration: str, seed: int) -> list[float]:
        tree = case("lte", duration=duration, seed=seed, sample="100ms")
        source = {"name": "cbr", "rate": "40mbit", "packet": "1500B"}
        tree["flows"] = [{"name": "udp", "path": ["down"], "source": source}]
        series = sj.simulate(tree).links["down"].series
        return [float(x) for x in series.departed_bytes[:50]]

    assert arrived("5s", 1) == arrived("20s", 1)
    assert arrived("5s", 1) != arrived("5s", 2)


def test_a_scenario_changes_single_keys_of_a_line() -> None:
    """A rate or delay replaces the process of it, a discipline keeps the buffer."""
    links = canonical(case("starlink", links={"down": {"rate": "9mbit", "qdisc": "codel"}}))[
        "links"
    ]
    assert set(links["down"]["process"]) == {"every", "delay_min", "delay_max"}
    assert links["down"]["qdisc"]["name"] == "codel"
    assert links["down"]["qdisc"]["limit"] == "112500B"  # 100 ms at 9 Mbit/s
    assert "rate_min" in links["up"]["process"]
    links = canonical(case("lte", links={"up": {"rate": "1mbit"}, "far": {"rate": "1gbit"}}))[
        "links"
    ]
    assert "process" not in links["up"]
    assert set(links) == {"down", "far", "up"}
    trace = {"t_ns": [0], "rate_bps": [5_000_000]}
    links = canonical(case("lte", links={"down": {"trace": trace}}))["links"]
    assert "process" not in links["down"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("lt", 'line: unknown line "lt", did you mean "lte"?'),
        (3, "line: 3 is not the name of a line"),
        ({"name": "lte"}, "line: "),
    ],
)
def test_a_wrong_line_is_refused(line: Any, message: str) -> None:
    """With its path and the nearest name."""
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        sj.simulate({**case("lte"), "line": line})


def test_a_scenario_file_names_a_line(sojourn: Command, tmp_path: Path) -> None:
    """With single keys on the command line."""
    file = tmp_path / "case.toml"
    file.write_text(
        'line = "cable"\nduration = "3s"\n[[flows]]\nname = "f"\npath = ["down"]\n'
        'return_path = ["up"]\n'
    )
    code, out, _ = sojourn("run", file, "--json", "--set", "down.qdisc=fq_codel")
    assert code == 0
    assert json.loads(out)["scenario"]["links"]["down"]["qdisc"]["name"] == "fq_codel"


def options(*shared: str, up: tuple[str, ...] = (), **more: str) -> dict[str, Any]:
    """Return the links of `sojourn link --profile starlink` with options KEY=VALUE."""
    pairs = dict(one.split("=", 1) for one in shared)
    settings = [f"{key}={value}" for key, value in more.items()]
    return links_of(dict(pairs), settings, {"up": up, "down": ()}, "starlink")


def test_options_of_a_link_change_the_profile() -> None:
    """They replace keys of the line, in one or both directions."""
    plain = options()
    assert plain["down"]["process"]["every"] == plain["up"]["process"]["every"] == "15s"
    assert plain["down"]["qdisc"]["limit"] == "1875kB"
    both = options("rate=20mbit", limit="50p")
    for one in both.values():
        assert one["rate"] == "20mbit"
        assert "rate_min" not in one["process"]
        assert one["qdisc"]["limit"] == "50p"
    one = options("qdisc=fq_codel", up=("delay=5ms", "rate=1mbit"))
    assert "process" not in one["up"]
    assert one["up"]["qdisc"]["name"] == one["down"]["qdisc"]["name"] == "fq_codel"
    assert one["down"]["process"] == plain["down"]["process"]
    with pytest.raises(InputError, match=r"^--profile: unknown line"):
        links_of({}, (), {"up": (), "down": ()}, "starlnik")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{ size = 5ms, distribution = normal }", {"size": "5ms", "distribution": "normal"}),
        ("{ up = exponential(10s), down = 200ms }", {"up": "exponential(10s)", "down": "200ms"}),
        ("[10s..11s]", ["10s..11s"]),
        ("[10s..11s, 20s..21s]", ["10s..11s", "20s..21s"]),
        ("{ p = 0.01, r = 1e-2, ecn = true }", {"p": 0.01, "r": 0.01, "ecn": True}),
        ("{ a = 'x y', b = [1, 2] }", {"a": "x y", "b": [1, 2]}),
        ("{ broken", "{ broken"),
        ("5ms", "5ms"),
    ],
)
def test_tables_on_the_command_line_need_no_quotes(text: str, value: Any) -> None:
    """As the help of --jitter, --outages and --process writes them."""
    assert read_value(text) == value


def test_the_command_lists_and_describes_lines(sojourn: Command, tmp_path: Path) -> None:
    """With the sources of all parameters, and a scenario to run."""
    code, out, _ = sojourn("line", "list")
    assert code == 0
    assert all(re.search(rf"^{name} ", out, re.MULTILINE) for name in NAMES)
    code, out, _ = sojourn("line", "list", "--json")
    assert json.loads(out) == lines()
    code, out, _ = sojourn("line", "describe", "starlink")
    assert code == 0
    assert "Tanveer et al." in out
    assert "process.rate_max" in out
    file = tmp_path / "line.toml"
    assert sojourn("line", "describe", "dsl", "--out", file)[0] == 0
    assert sojourn("run", file, "--set", "duration=12s")[0] == 0
    for words, message in (
        (("starlnik",), "did you mean"),
        (("lte", "--down", "5mbit"), "--down: not with lte, which has its own"),
        (("--down", "5mbit", "--up", "1mbit"), "--rtt: is missing: give it, or the name"),
        (("--json",), "--json: only with the name"),
    ):
        code, _, err = sojourn("line", "describe", *words)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1


def test_the_page_has_every_line() -> None:
    """It has the numbers of the models: `make gen` writes it."""
    text = PAGE.read_text()
    for line in lines():
        assert f"\n## {line['name']}\n" in text
        for row in line["rows"]:
            assert f"| `{row['key']}` |" in text


@pytest.mark.live
def test_a_live_link_has_the_rate_and_the_delay_of_its_line() -> None:
    """Datagrams at 20 Mbit/s into LTE: what arrives is below its greatest rate."""
    ping = link(["--profile", "lte"], ["ping", "-n", "-i", "0.05", "-c", "10", FAR])
    times = np.array([float(ms) for ms in re.findall(r"time=([\d.]+) ms", ping.stdout)])
    assert len(times) == 10
    # 20 ms each way, up to 1 ms of a subframe each way, and 2 packets of 84 bytes.
    assert 40 <= np.median(times) < 46
    code = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for _ in range(5):
            s.sendto(bytes(1000), (sys.argv[1], 9))
        time.sleep(0.002)
"""
    done = link(["--profile", "lte", "--json"], python(code, FAR))
    up = summary_of(done)["links"]["up"]
    bps = up["departed_bytes"] * 8 / 3
    assert 0.5e6 < bps < 12.5e6
    assert up["utilisation"] > 0.8
    assert up["sojourn_p99_s"] > 0.1
