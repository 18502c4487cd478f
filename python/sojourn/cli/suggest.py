"""Values that shell completion offers for arguments and options."""

import json
from collections.abc import Iterator


def disciplines(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the disciplines for the last name of a list, with a description.

    `incomplete` is the text before the cursor, like "codel,fq_".
    """
    from sojourn import _sojourn

    before, comma, last = incomplete.rpartition(",")
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        if spec["name"].startswith(last):
            yield f"{before}{comma}{spec['name']}", spec["about"]


def disciplines_and_scenarios(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield disciplines, named scenarios, and the scenario files here."""
    yield from disciplines(incomplete)
    yield from scenarios(incomplete)


def names(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the lists and names that `sojourn list` knows, with a description."""
    from sojourn.cli import list as listing

    for kind in listing.KINDS:
        if kind.startswith(incomplete):
            yield kind, "list"
    for kind in set(listing.TABLES) - {"papers"}:  # papers are slow to import
        for spec in listing.find(kind, None):
            if spec["name"].startswith(incomplete):
                yield spec["name"], spec["about"]


def scenarios(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the named scenarios, with a description, and the scenario files here."""
    from pathlib import Path

    from sojourn.scenario import named

    for name in named.ORDER:
        if name.startswith(incomplete):
            yield name, named.spec(name)["about"]
    folder, _, start = incomplete.rpartition("/")
    for path in sorted(Path(folder or ".").glob(f"{start}*")):
        if path.suffix in (".toml", ".json") or path.is_dir():
            yield str(path) + "/" * path.is_dir(), "file"


def lines(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the access lines, with a description."""
    from sojourn.scenario.lines import lines

    for line in lines():
        if line["name"].startswith(incomplete):
            yield line["name"], line["about"]


def papers(incomplete: str) -> Iterator[str]:
    """Yield the papers of `sojourn paper run`."""
    from sojourn.cli.collection import installed

    if collection := installed():
        yield from (name for name in collection.ids() if name.startswith(incomplete))
