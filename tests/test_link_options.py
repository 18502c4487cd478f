"""Options of `sojourn link`: the links that they describe, and contradictions between them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from sojourn import InputError
from sojourn.cli.link_options import links_of
from sojourn.cli.suggest import disciplines
from sojourn.live.summary import described

COMMAND = pytest.mark.skipif(sys.platform != "linux", reason="real packets require Linux")

CELL = "0\n10\n20\n30\n99\n250\n300\n"
"""Seven opportunities of 1500 bytes in 300 ms: 280 kbit/s."""
RATES = "t_s,rate_bps\n0,4000000\n2,1000000\n"
LATER = "t_s,rate_bps\n5,4000000\n"
DELAYS = "t_s,delay_s\n0,0.01\n"
BOTH = "t_s,rate_bps,delay_s\n0,4000000,0.01\n"


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a trace of each kind to the directory of the test."""
    monkeypatch.chdir(tmp_path)
    for name in ("CELL", "RATES", "LATER", "DELAYS", "BOTH"):
        Path(name.lower()).write_text(globals()[name])


def links(*options: str) -> dict[str, Any]:
    """Return the links of options, which are written as on the command line."""
    shared: dict[str, str | None] = {}
    settings: list[str] = []
    own: dict[str, list[str]] = {"up": [], "down": []}
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == "--set":
            settings.append(value)
        elif option[2:] in own:
            own[option[2:]].append(value)
        else:
            shared[option[2:]] = value
    return links_of(shared, settings, own)


@COMMAND
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--rate 1mbit --trace cell", "--rate: cannot be combined with --trace, which gives the"),
        ("--rate 1mbit --trace rates", "--rate: cannot be combined with --trace, which gives the"),
        ("--delay 1ms --trace both", "--delay: cannot be combined with --trace, which gives the"),
        ("--up 5mbit", "--up 5mbit: write it as KEY=VALUE, like rate=5mbit"),
        (
            "--down qdisc=cake(rtt=9ms),rate=25mbit",
            "--down qdisc=cake(rtt=9ms),rate=25mbit: takes one KEY=VALUE, repeat it: "
            "--down qdisc=cake(rtt=9ms) --down rate=25mbit",
        ),
        ("--rate 1mbit --set 5ms", "--set 5ms: write it as KEY=VALUE, like target=15ms"),
        ("--up rate=1mbit --up trace=cell", "--up: rate: cannot be combined with trace, which"),
        ("--rate 1mbit --up rate=2mbit --down rate=3mbit", "--rate: has no effect, since --up and"),
        ("--rate 1mbit --up trace=cell --down trace=cell", "--rate: has no effect, since --up and"),
        (
            "--trace cell --up rate=1mbit --down rate=1mbit",
            "--trace: has no effect, since --up and",
        ),
        ("--rate 1mbit --loss 1% --up loss=2% --down loss=3%", "--loss: has no effect, since --up"),
        (
            "--rate 1mbit --set limit=9p --up qdisc=red --down qdisc=red",
            "--set limit: has no effect",
        ),
        (
            "--rate 1mbit --qdisc pie --up qdisc=red --down qdisc=red",
            "--qdisc: has no effect, since",
        ),
        (
            "--rate 1mbit --set limit=9p --up qdisc.limit=8p --down qdisc.limit=7p",
            "--set limit: has no effect, since --up and --down",
        ),
        ("--rate 1mbit --set limit=9p --set limit=8p", "--set limit: is given twice"),
        ("--up rate=1mbit --up rate=2mbit --down rate=1mbit", "--up rate: is given twice"),
        ("--rate 1mbit --qdisc codel(target=9ms) --set target=5ms", "--set target: is given twice"),
        ("--rate 1mbit --qdisc codel( --set target=5ms", '--qdisc: "codel(" does not end'),
        ("--rate 1mbit --qdisc cdoel --set target=5ms", '--qdisc: unknown discipline "cdoel"'),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: str, message: str, sojourn: Command
) -> None:
    """Each in one line that names them."""
    code, out, err = sojourn("link", *options.split(), "--", "true")
    assert (code, out) == (2, "")
    assert err.startswith(f"sojourn: {message}"), err
    assert err.count("\n") == 1


@COMMAND
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--sample 20ms", "--sample: has no effect without --watch, --watch-to or --log"),
        (
            "--packet-log out --watch-to out/up.csv",
            "--watch-to: out/up.csv is a file of --packet-log as well",
        ),
        ("--pcap a.pcapng --watch-to ./a.pcapng", "--watch-to: a.pcapng is a file of --pcap as"),
    ],
)
def test_outputs_that_contradict_each_other_are_refused(
    options: str, message: str, sojourn: Command
) -> None:
    """Each in one line that names both."""
    Path("out").mkdir()
    code, _, err = sojourn("link", "--rate", "1mbit", *options.split(), "--", "true")
    assert (code, err.startswith(f"sojourn: {message}")) == (2, True), err


def test_options_of_a_direction_replace_those_of_both() -> None:
    """Also if one gives a rate and the other a trace, or part of a trace."""
    one = links("--rate", "1mbit", "--up", "trace=cell")
    assert one["up"]["trace"]["opportunities_ms"][-1] == 300
    assert (one["up"]["rate"], one["down"]["rate"]) == ("280kbit", "1mbit")
    two = links("--trace", "cell", "--down", "rate=50mbit")
    assert "trace" not in two["down"]
    assert two["down"]["rate"] == "50mbit"
    three = links("--trace", "both", "--down", "rate=50mbit", "--up", "delay=7ms")
    assert set(three["down"]["trace"]) == {"t_ns", "delay_ns"}
    assert set(three["up"]["trace"]) == {"t_ns", "rate_bps"}
    assert (three["up"]["delay"], three["up"]["rate"]) == ("7ms", "4mbit")
    four = links("--rate", "1mbit", "--trace", "delays")
    assert four["up"]["rate"] == "1mbit"
    five = links("--rate", "1mbit", "--trace", "later", "--delay", "3ms")
    assert five["up"]["rate"] == "1mbit", "until the trace begins"


def test_disciplines_and_their_parameters_in_any_order() -> None:
    """Shared parameters apply only to the shared discipline."""
    one = links("--rate", "1mbit", "--set", "target=9ms", "--qdisc", "codel", "--down", "qdisc=pie")
    assert (one["up"]["qdisc"]["name"], one["up"]["qdisc"]["target"]) == ("codel", "9ms")
    assert one["down"]["qdisc"]["name"] == "pie"
    two = links("--rate", "1mbit", "--up", "qdisc.target=7ms", "--up", "qdisc=codel")
    assert (two["up"]["qdisc"]["target"], two["down"]["qdisc"]["name"]) == ("7ms", "droptail")
    three = links("--rate", "1mbit", "--qdisc", "codel(target=9ms)", "--set", "limit=50p")
    assert (three["up"]["qdisc"]["target"], three["up"]["qdisc"]["limit"]) == ("9ms", "50p")
    four = links("--rate", "1mbit", "--qdisc", "codel(target=9ms)", "--up", "qdisc.target=8ms")
    assert (four["up"]["qdisc"]["target"], four["down"]["qdisc"]["target"]) == ("8ms", "9ms")


def test_the_banner_describes_what_the_link_does() -> None:
    """For a trace, it does not claim a fixed rate."""
    up = links("--trace", "cell")["up"]
    assert described(up).startswith("trace of 7 opportunities (280 kbit on average), 0s, droptail")
    up = links("--trace", "both")["up"]
    assert described(up).startswith("trace of 1 rates (4.00 mbit at most), trace of 1 delays, drop")
    up = links("--rate", "1mbit", "--trace", "delays", "--loss", "2%")["up"]
    assert described(up).startswith("1mbit, trace of 1 delays, droptail")
    assert described(up).endswith(", 2.0 % loss on the wire; hidden queues: none")
    with pytest.raises(InputError, match="--trace: nowhere: no such file"):
        links("--trace", "nowhere")


def test_the_description_names_every_discipline() -> None:
    """Also those whose buffer has no fixed size, such as cake."""
    names = [name for name, _ in disciplines("")]
    assert "cake" in names
    for name in names:
        up = links("--rate", "1mbit", "--qdisc", name)["up"]
        assert described(up).startswith(f"1mbit, 0s, {name} ("), name
