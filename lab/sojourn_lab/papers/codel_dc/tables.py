"""Tables of `codel_dc`."""

import polars as pl

from sojourn_lab.papers.codel_dc.changed import (
    BASE,
    LINKS,
    compared,
    compared_by_load,
    tuned,
)
from sojourn_lab.papers.codel_dc.ns2 import COMPARED, compared_to_ns2
from sojourn_lab.papers.codel_dc.series import known_mean
from sojourn_lab.papers.codel_dc.set_up import BASE as CHOSEN
from sojourn_lab.papers.codel_dc.set_up import NAMES, SCHEMES, SetUp
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.constants import documented
from sojourn_lab.reproduction.paper import table


@table("I", "Constants of the set-up, and who states them", needs=())
def table_one(_: Runs) -> pl.DataFrame:
    """Tabulate the constants of `SetUp`. Our copy of the text does not have the paper's Table I."""
    texts = documented(SetUp)
    rows = [(x, str(getattr(CHOSEN, x)), _whose(text), text) for x, text in texts.items()]
    return pl.DataFrame(rows, schema=["constant", "value", "stated by", "meaning"], orient="row")


def _whose(text: str) -> str:
    return (
        "the paper and us" if "that one" in text else "us" if "not state" in text else "the paper"
    )


@table(
    "ns-2",
    "Compared with ns-2: the first 20 queries, or short flows; equal links, and different links",
    needs=COMPARED,
)
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Compare mean times, utilisation, loss and queue with ns-2's."""
    return compared_to_ns2(runs)


@table("caption", "1000 kB from each server, as the caption of figure 10 has it", needs=["caption"])
def as_captioned(runs: Runs) -> pl.DataFrame:
    """Tabulate the disciplines with 1000 kB from each server."""
    rows = [
        (
            n,
            NAMES[s],
            *(
                known_mean(factor * values(runs["caption"], what, scheme=s, servers=n))
                for what, factor in SHOWN
            ),
        )
        for n in (8, 16)
        for s in SCHEMES
    ]
    heads = ["mean time, ms", "utilisation, %", "loss, %", "queue, packets"]
    return pl.DataFrame(rows, schema=["servers", "discipline", *heads], orient="row")


@table("queries", "Queries finished per run", needs=["incast", "servers"])
def queries_ended(runs: Runs) -> pl.DataFrame:
    """Tabulate the finished queries: few or none if the long flow locks out the others."""
    rows = []
    for name, x in (("incast", "kB"), ("servers", "servers")):
        for place in sorted(runs[name][x].unique().to_list()):
            for s in SCHEMES:
                queries = values(runs[name], "queries", scheme=s, **{x: place})
                rows.append(
                    (f"{x} {place}", NAMES[s], queries.min(), queries.mean(), queries.max())
                )
    names = ["case", "discipline", "min", "mean", "max"]
    return pl.DataFrame(rows, schema=names, orient="row")


SHOWN = (("afct_s", 1e3), ("utilisation", 100), ("loss", 100), ("queue_packets", 1))


@table("sensitivity", "One parameter changed for all disciplines", needs=["changed"])
def changed_for_all(runs: Runs) -> pl.DataFrame:
    """Tabulate CoDel's gains under settings that the paper does not state."""
    return compared(runs["changed"], list(LINKS))


@table("parameters", "One parameter changed in one discipline", needs=["changed"])
def changed_parameters(runs: Runs) -> pl.DataFrame:
    """Tabulate the effect of RED's parameters and of CoDel's variant."""
    return compared(runs["changed"], [BASE, *tuned(CHOSEN)])


@table("loads", "Short flows: one parameter of RED changed", needs=["loads settings", "loads"])
def changed_red_by_load(runs: Runs) -> pl.DataFrame:
    """Tabulate CoDel's gains over other settings of RED."""
    return compared_by_load(runs["loads settings"], runs["loads"])


@table("SYNs", "Initial RTO of 3 s (ns-2's default), longer runs", needs=["lost SYNs"])
def lost_syns(runs: Runs) -> pl.DataFrame:
    """Tabulate the cost of a lost SYN."""
    return compared(runs["lost SYNs"].with_columns(what=pl.lit("initial RTO 3 s")), [])
