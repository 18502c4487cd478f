"""Selection and order of the tests that `mutation/rust.py` runs on the mutants of a file."""

import re
from pathlib import Path
from typing import NamedTuple

RECOUNT = ("statistics_agree_with_a_recount",)
"""Property test of the link's counters: two thirds of the suite's time."""
TCP_NEAR = ("tcp_rfc", "tcp_ns2", "tcp_rack", "tcp_reopen")
"""These take milliseconds."""
TCP_FAR = (
    *(
        "hand_computed",
        "lib",
        "claims_fairness",
        "claims_red",
        "changes",
        "cc",
        "cc_traces",
        "prague_bbr3_ledbat",
        "tcp_theory",
    ),
    "claims_controllers",
)
"""In the order of what they cost, from 0.1 to 7 s."""
CONTROLS = {"bbr_filter": "bbr", "rate": "bbr", "pacer": "paced"}
"""Part of the names of the tests of a file in cc/, if it is not the name of the file."""

RECORDED = {
    "cake": ("cake",),
    "cobalt": ("cobalt", "cake"),
    "codel": ("codel",),
    "fq": ("fq_codel",),
    "fq_paced": ("fq_is",),
    "pie": ("pie",),
    "red": ("red_",),
    "sfq": ("sfq",),
}
"""Part of the names of the tests that replay recordings of Linux, for these disciplines."""

DISCIPLINES = {
    "api": "red",
    "clocked": "scfq",
    "bucket": "tbf",
    "drop_tail": "droptail",
    "dual": "dualpi2",
    "fair": "drr",
    "hold": "ewfq",
    "longest": "fq_codel",
    "ring": "drr",
    "scheduler": "drr",
    "tags": "wfq",
    "tree": "wfq",
}
"""Discipline on which the property suite tests a file, if it is not the name of the file."""


class Rung(NamedTuple):
    """Some tests of one test binary."""

    package: str
    target: str
    """`lib` for the unit tests, else the name of an integration test."""
    only: tuple[str, ...] = ()
    """Tests whose names contain one of these; empty for all."""
    without: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    def arguments(self) -> list[str]:
        """Return the arguments for the test binary."""
        return [*self.only, *(word for skip in self.without for word in ("--skip", skip))]


def ladder(root: Path, file: str) -> tuple[list[Rung], list[Rung]]:
    """Return the tests for `file`: the nearest first, then those for survivors only."""
    path = Path(file)
    parts = path.with_suffix("").parts[3:]
    own = "::".join(parts) + "::"
    if path.parts[1] == "sim":
        near = [Rung("sojourn-sim", "lib", (own,)), Rung("sojourn-sim", "lib", ("tcp::", "cc::"))]
        near += [Rung("sojourn-sim", target) for target in TCP_NEAR]
        if "cc" in parts:
            control = (CONTROLS.get(path.stem, path.stem),)
            near += [Rung("sojourn-sim", target, control) for target in ("cc_traces", "cc")]
        return near, [Rung("sojourn-sim", target) for target in ("golden", *TCP_FAR)]
    near = [Rung("sojourn-aqm", "lib", (own,)), Rung("sojourn-aqm", "lib")]
    if parts[0] == "tc":
        return [*near, Rung("sojourn-aqm", "tc")], []
    if (recorded := RECORDED.get(parts[-1] if len(parts) < 3 else parts[1])) is not None:
        near.append(Rung("sojourn-sim", "linux", recorded))
    models = models_of(root, path.stem)
    far = [Rung("sojourn-aqm", "exhaustive", models)] if models else []
    if parts[0] in ("aqm", "sched") and parts[-1] != "mod":
        name = DISCIPLINES.get(parts[1], parts[1])
        only = (("SOJOURN_DISCIPLINE", name),)
        far.append(Rung("sojourn-aqm", "check", (), RECOUNT, only))
    else:
        without = () if parts[0] in ("link", "stats") else RECOUNT
        far.append(Rung("sojourn-aqm", "exhaustive", (), models))
        far.append(Rung("sojourn-aqm", "check", (), without))
    far.append(Rung("sojourn-aqm", "gps"))
    return near, [*far, Rung("sojourn-sim", "vectors"), Rung("sojourn-sim", "golden")]


def models_of(root: Path, stem: str) -> tuple[str, ...]:
    """Return the modules of the exhaustive tests that mention the module `stem`."""
    files = sorted((root / "crates/aqm/tests/exhaustive").glob("*.rs"))
    word = re.compile(rf"\b{stem}\b")
    files = [
        f
        for f in files
        if f.stem not in ("main", "naive", "coverage") and word.search(f.read_text())
    ]
    return tuple(f"{f.stem}::" for f in files)
