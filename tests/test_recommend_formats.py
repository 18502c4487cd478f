"""Formats of `recommend --format`: read back as the setting, and naming what they cannot say."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn import tc
from sojourn.recommendation import configuration, script
from sojourn.recommendation.configuration import FORMATS, Setting
from sojourn.recommendation.line import Line, make
from sojourn.recommendation.link_layer import LAYERS

HOME = make("20mbit", "1mbit", "20ms..60ms", "home")
BARE = make("20mbit", "1mbit", "20ms..60ms", "home", shaper=False)


def setting(qdisc: dict[str, Any], layer: str | None = None, line: Line = HOME) -> Setting:
    """Return a setting of device wan0."""
    return Setting(line, qdisc, "wan0", "sj-wan0", LAYERS[layer] if layer else None)


def written(form: str, *words: Any, **keys: Any) -> str:
    """Return a setting in a format."""
    return "\n".join(configuration.write(setting(*words, **keys), form))


def links(text: str, form: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the links of a configuration by device."""
    return {link["dev"]: link for link in tc.imported(text, form=form)}


def installed(qdisc: dict[str, Any], layer: str | None) -> dict[str, dict[str, Any]]:
    """Return the links that the shell commands install."""
    lines = script.install(HOME, qdisc, "wan0", "sj-wan0", LAYERS[layer] if layer else None)
    adds = [one for one in lines if re.match(r"tc (qdisc|class) add .*(root|parent)", one)]
    return links("\n".join(adds))


def without(qdisc: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a discipline without some of its keys."""
    return {key: value for key, value in qdisc.items() if key not in keys}


CAKES = [({"name": "cake"}, None), ({"name": "cake", "rtt": "300ms"}, "adsl-pppoe-llc"),
         ({"name": "cake"}, "vdsl2-pppoe"), ({"name": "cake"}, "docsis")]  # fmt: skip


@pytest.mark.parametrize(("qdisc", "layer"), CAKES, ids=str)
def test_cake_of_every_format_is_that_of_the_commands(
    qdisc: dict[str, Any], layer: str | None
) -> None:
    """Rate, framing, isolation, rtt and ACK filter; formats without `ingress` name it."""
    tree = installed(qdisc, layer)
    own = {"up": tree["wan0"]["qdisc"], "down": tree["sj-wan0"]["qdisc"]}
    sqm = links(written("sqm", qdisc, layer))
    assert sqm["wan0"]["qdisc"] == own["up"]
    # layer_cake reads diffserv3 and then besteffort, of which the last counts.
    assert sqm["ifb4wan0"]["qdisc"] == own["down"]
    text = written("networkd", qdisc, layer)
    assert "networkd has no key for ingress" in text
    files = dict(re.findall(r"# ([\w-]+)\.network\n(.*?)(?=\n\n# |\Z)", text, re.DOTALL))
    assert links(files["wan0"])["wan0"]["qdisc"] == own["up"]
    assert links(files["sj-wan0"])["sj-wan0"]["qdisc"] == without(own["down"], "ingress")
    assert "Kind=ifb" in text
    assert "redirect dev sj-wan0" in text
    text = written("routeros", qdisc, layer)
    assert "cake ingress: RouterOS has no key for it" in text
    routeros = links(text)
    assert routeros["shaper-up"]["qdisc"] == own["up"]
    assert routeros["shaper-down"]["qdisc"] == without(own["down"], "ingress")


def test_a_shaper_of_classes_of_every_format() -> None:
    """HTB with fq_codel: rates and parameters; the framing where a format has it."""
    qdisc = {"name": "fq_codel", "target": "10ms", "ecn": False}
    tree = installed(qdisc, "adsl-pppoe-llc")["wan0"]
    for form, up in (("sqm", "wan0"), ("networkd", "wan0"), ("routeros", "shaper-up")):
        text = written(form, qdisc, "adsl-pppoe-llc")
        if form == "networkd":
            text = text.split("\n# sj-wan0.netdev")[0]
        link = links(text)[up]
        assert link["rate"] == tree["rate"] == "950kbit"
        assert (link["qdisc"]["target"], link["qdisc"]["ecn"]) == ("10ms", False)
        assert (form == "sqm") == ("no size table" not in text)
    assert "option overhead '26'" in written("sqm", qdisc, "adsl-pppoe-llc")
    assert "option linklayer 'atm'" in written("sqm", qdisc, "adsl-pppoe-llc")
    assert "fq-codel-ecn=yes" in written("routeros", {"name": "fq_codel"})


def test_an_entry_of_libreqos() -> None:
    """Rates in Mbit/s, both directions of `sqm`, and a comment on the rest."""
    text = written("libreqos", {"name": "cake", "rtt": "50ms"}, "docsis")
    (row,) = csv.DictReader(text.splitlines())
    assert (row["Download Max Mbps"], row["Upload Max Mbps"]) == ("19", "0.95")
    assert float(row["Download Min Mbps"]) < float(row["Download Max Mbps"])
    assert row["sqm"] == "cake/cake"
    assert "rtt 50ms" in row["Comment"]
    assert "overhead 18 mpu 64" in row["Comment"]
    with pytest.raises(sj.InputError, match="libreqos has cake and fq_codel, not pie"):
        written("libreqos", {"name": "pie"})


def test_networkmanager_has_a_qdisc_but_no_shaper() -> None:
    """Without a shaper its words are written, with one it is refused."""
    text = written("networkmanager", {"name": "fq_codel", "target": "10ms"}, line=BARE)
    assert "qdisc.root=fq_codel target 10000" in text
    with pytest.raises(sj.InputError, match="networkmanager has no shaper"):
        written("networkmanager", {"name": "cake"})
    assert "[FairQueueingControlledDelay]" in written("networkd", {"name": "fq_codel"}, line=BARE)
    for form in ("sqm", "routeros", "libreqos"):
        with pytest.raises(sj.InputError, match=f"{form} shapes by itself"):
            written(form, {"name": "fq_codel"}, line=BARE)
    with pytest.raises(sj.InputError, match="routeros has no queue type for pie"):
        written("routeros", {"name": "pie"})


LINE = ("--down", "2mbit", "--up", "1mbit", "--rtt", "20ms", "--only", "codel", "--dev", "wan0")


def test_the_command_prints_a_format_alone(sojourn: Command) -> None:
    """Nothing else is on standard output; wrong names and combinations are refused at once."""
    code, out, err = sojourn("recommend", *LINE, "--format", "shell")
    assert (code, err.count("\n")) == (0, 1)
    assert out.startswith("(\nset -e")
    assert out.endswith(")\n")
    code, _, err = sojourn("recommend", *LINE, "--format", "networks")
    assert (code, f"is none of {', '.join(FORMATS)}" in err) == (2, True)
    assert "without --json" in sojourn("recommend", *LINE, "--format", "sqm", "--json")[2]


def line_file(folder: Path, **keys: str) -> Path:
    """Write the scenario of a line, with other keys of its link `down`."""
    down = {"rate": "2mbit", "qdisc": {"name": "droptail", "limit": "40kB"}, **keys}
    up = {"rate": "1mbit", "qdisc": {"name": "droptail", "limit": "15kB"}}
    flow = {"name": "a", "path": ["down"], "return_path": ["up"], "rtt": "20ms"}
    tree = {"duration": "1s", "links": {"down": down, "up": up}, "flows": [flow]}
    path = folder / "line.toml"
    sj.save_scenario(tree, path)
    return path


def test_a_line_is_read_from_its_scenario(tmp_path: Path, sojourn: Command) -> None:
    """Rates, round-trip time and both buffers; options go first."""
    path = line_file(tmp_path)
    options = sj.line.options(path)
    assert options == {"down": "2mbit", "up": "1mbit", "rtt": "20ms", "buffer": "40kB/15kB"}
    words = ("--only", "codel", "--json")
    code, out, _ = sojourn("recommend", "--line", path, *words)
    assert code == 0
    assert '"rate": "1900000bit"' in out
    assert (
        '"rate": "2850000bit"' in sojourn("recommend", "--line", path, "--down", "3mbit", *words)[1]
    )
    assert "--rtt: is missing" in sojourn("recommend", "--down", "2mbit", "--up", "1mbit")[2]
    rtts = ("20ms", "30ms")
    link = {"rate": "1mbit"}
    flows = [{"name": f"f{n}", "path": ["up"], "rtt": rtt} for n, rtt in enumerate(rtts)]
    both = {"down": link, "up": link}
    varying = {**both, "down": {"rate": "1mbit", "trace": {"t_ns": [0], "rate_bps": [1000000]}}}
    for links, own, message in (
        ({"up": link}, flows[:1], "has no link called down, so it is no line"),
        (both, flows, "has flows with different round-trip times"),
        (both, [], "there is no flow"),
        (varying, flows[:1], "has a link with a trace"),
    ):
        with pytest.raises(sj.InputError, match=message):
            sj.line.options({"duration": "1s", "links": links, "flows": own})


def test_a_buffer_of_each_direction() -> None:
    """Down first; a third value is refused."""
    line = make("2mbit", "1mbit", "20ms", "home", buffer="50ms/15kB")
    both = {"down": "12500B", "up": "15kB"}
    from sojourn.recommendation.line import installed as link

    for way, limit in both.items():
        qdisc = {"name": "droptail", "limit": line.buffer}
        assert link(line, qdisc, way, shaped=False)["qdisc"]["limit"] == limit
    with pytest.raises(sj.InputError, match=r"--buffer: .* more than two values"):
        make("2mbit", "1mbit", "20ms", "home", buffer="1ms/1ms/1ms")
    with pytest.raises(sj.InputError, match="--buffer: "):
        make("2mbit", "1mbit", "20ms", "home", buffer="1ms/big")
