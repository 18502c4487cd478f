"""The commands for an ADSL line leave the queue in the router: the modem sends cells of ATM."""

import re
from typing import Any

import pytest

import sojourn as sj
from sojourn import tc
from sojourn.recommendation import script
from sojourn.recommendation.line import make
from sojourn.recommendation.link_layer import LAYERS

LAYER = LAYERS["adsl-pppoe-llc"]
LINE = make("8mbit", "1mbit", "40ms", "home")


def router(qdisc: dict[str, Any], *, framed: bool) -> dict[str, Any]:
    """Return the uplink that the printed commands install, with or without the link layer."""
    lines = script.install(LINE, qdisc, "wan0", "sj-wan0", LAYER if framed else None)
    adds = [one for one in lines if re.match(r"tc (qdisc|class) add dev wan0 (root|parent)", one)]
    (link,) = tc.imported("\n".join(adds))
    keys = ("rate", "qdisc", "overhead", "burst")
    known = {key: link[key] for key in keys if link.get(key) not in (None, "none")}
    return {"rate": "100mbit", **known}


def modem_delay_s(qdisc: dict[str, Any], *, framed: bool) -> float:
    """Return the mean queueing delay in a modem that sends 1000 kbit/s of cells under uploads."""
    links = {
        "router": router(qdisc, framed=framed),
        "modem": {
            "rate": "1mbit",
            "overhead": LAYER.numbers(),
            "qdisc": "droptail(limit=100kB)",
        },
    }
    path = ["router", "modem"]
    call = {"name": "cbr", "rate": "80kbit", "packet": "200B"}
    flows = [
        {"name": "upload", "count": 3, "path": path, "rtt": "40ms"},
        {"name": "call", "path": path, "source": call},
    ]
    tree = {"duration": "40s", "warmup": "10s", "seed": 1, "links": links, "flows": flows}
    result = sj.simulate(tree)
    assert result.links["modem"]["utilisation"] > 0.9
    delay: float = result.links["modem"]["sojourn_mean_s"]
    return delay


@pytest.mark.parametrize("name", ["cake", "fq_codel"])
def test_a_shaper_at_95_percent_needs_the_cells_of_the_line(name: str) -> None:
    """With them the modem holds less than a packet, without them a whole buffer.

    A full packet of 1500 bytes takes 33 cells of 53 bytes, 14 ms.
    """
    assert modem_delay_s({"name": name}, framed=True) < 0.014
    assert modem_delay_s({"name": name}, framed=False) > 0.5
