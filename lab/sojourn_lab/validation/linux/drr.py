"""DRR and PRIO of Linux: our DRR and PRIO decide as they do."""

from sojourn_lab.validation.linux import exact

TITLE = "drr, prio"

INTRO = f"""{exact.INTRO}

There is nothing in which Linux departs from our DRR and PRIO, so that they have no variant. In the
`drr` cases each flow has a class with `quantum 1514` and a child `pfifo limit 16`, in the `drrw`
cases the first class has `quantum 500`, the second 1500, all others 1000, and the children
`pfifo limit 20`. In the `prio` cases flow i is in band i mod 3, and the children are
`pfifo limit 10`, 20 and 40."""

ROOM = "1000000p"
"""Size of the shared buffer, which Linux does not have."""

CASES = [
    *(
        exact.case(f"drr_{p}", "drr", name="drr", limit=ROOM, limits="16p", quantum="1514B")
        for p in ("bursts", "flows64", "sparse")
    ),
    *(
        exact.case(
            f"drrw_{p}",
            "drr",
            name="drr",
            limit=ROOM,
            limits="20p",
            quantum="1000B",
            weights=[0.5, 1.5, 1],
        )
        for p in ("bursts", "flows64", "sparse")
    ),
    *(
        exact.case(
            f"prio_{p}",
            "prio bands 3",
            name="prio",
            limit=ROOM,
            limits=["10p", "20p", "40p"],
            flows=3,
            by="flow",
        )
        for p in ("flows64", "sparse")
    ),
]
