"""CoDel and FQ-CoDel as in Linux."""

from validation.linux.exact import INTRO as INTRO
from validation.linux.exact import cases

TITLE = "codel, fq_codel"

LINUX = {"name": "codel", "variant": "linux"}
FAIR = {"name": "fq_codel", "variant": "linux"}

CASES = [
    *cases("codel", "codel limit 1000 noecn", **LINUX, limit="1000p"),
    *cases("codelecn", "codel limit 1000 ecn", **LINUX, limit="1000p", ecn=True),
    *cases(
        "codel2",
        "codel limit 100 target 20ms interval 200ms noecn",
        **LINUX,
        limit="100p",
        target="20ms",
        interval="200ms",
    ),
    *cases("fqcodel", "fq_codel noecn", **FAIR, ecn=False),
    *cases("fqcodelecn", "fq_codel ecn", **FAIR),
    *cases(
        "fqcodel2",
        "fq_codel limit 60 quantum 300 target 8ms interval 80ms noecn",
        **FAIR,
        limit="60p",
        quantum="300B",
        target="8ms",
        interval="80ms",
        ecn=False,
    ),
]
