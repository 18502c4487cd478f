"""SFQ as in Linux."""

from sojourn_lab.validation.linux.exact import INTRO as INTRO
from sojourn_lab.validation.linux.exact import cases

TITLE = "sfq"

LINUX = {"name": "sfq", "variant": "linux"}

CASES = [
    *cases("sfq", "sfq limit 127 quantum 1514 perturb 0", **LINUX, quantum="1514B"),
    *cases(
        "sfq2",
        "sfq limit 60 depth 20 quantum 600 perturb 0 headdrop",
        **LINUX,
        limit="60p",
        depth=20,
        quantum="600B",
        drop="head",
    ),
]
