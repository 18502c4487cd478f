"""FIFO queues of Linux: `droptail`."""

from sojourn_lab.validation.linux.exact import INTRO as INTRO
from sojourn_lab.validation.linux.exact import case

TITLE = "pfifo, bfifo, pfifo_head_drop"

CASES = [
    *(case(f"pfifo_{p}", "pfifo limit 50", name="droptail", limit="50p") for p in ("onoff", "two")),
    *(
        case(f"bfifo_{p}", "bfifo limit 40000", name="droptail", limit="40000B")
        for p in ("onoff", "two")
    ),
    *(
        case(f"hdrop_{p}", "pfifo_head_drop limit 50", name="droptail", limit="50p", policy="head")
        for p in ("onoff", "two")
    ),
]
