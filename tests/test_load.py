"""`sj.load` returns typed objects that mean the same as the file."""

from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.scenario.draft import Draft, canonical

EXAMPLES = [
    file
    for file in sorted((Path(__file__).parent.parent / "examples").glob("*.toml"))
    if "scenario" not in Draft.read(file).tree  # which a sweep file has
]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_mean_the_same_as_objects(file: Path) -> None:
    """The object and the file have the same canonical form."""
    case = sj.load(file)
    assert isinstance(case, sj.Scenario)
    assert all(isinstance(link, sj.Link) for link in case.links.values())
    assert all(isinstance(flow, sj.Flow) for flow in case.flows)
    assert canonical(case) == canonical(Draft.read(file))


FORMS = """
    duration = "2s"
    links.up = { rate = "5mbit", qdisc = "RED(minth=9p, gentle=buffer, ecn=true, max_p=2%)" }
    links.down = { rate = "5mbit", qdisc = { name = "FQ-CoDel", limit = "200kB" } }
    [[flows]]
    name = "bulk"
    path = ["up"]
    return_path = ["down"]
    class = 1
    tcp = "sack1"
    source = { name = "transfers", size = "10kB" }
    [[changes]]
    at = "1s"
    leave = ["bulk"]
"""


def test_all_forms_become_objects(tmp_path: Path) -> None:
    """Text, tables, aliases, capitals and hyphens."""
    file = tmp_path / "forms.toml"
    file.write_text(FORMS)
    case = sj.load(file)
    up, down, flow = case.links["up"], case.links["down"], case.flows[0]
    assert isinstance(up, sj.Link)
    assert isinstance(down, sj.Link)
    assert isinstance(flow, sj.Flow)
    assert up.qdisc == sj.Red(min_th="9p", gentle="buffer", ecn=True, max_p="2%")
    assert down.qdisc == sj.FqCoDel(limit="200kB")
    assert flow.tcp == sj.tcp.Sack()
    assert flow.source == sj.Transfers(size="10kB")
    assert flow.class_ == 1
    assert case.changes == [sj.Change(at="1s", leave=["bulk"])]
    assert canonical(case) == canonical(Draft.read(file))


def test_a_parameter_under_two_names_stays_a_table(tmp_path: Path) -> None:
    """Rust decides which one counts."""
    file = tmp_path / "twice.toml"
    file.write_text(FORMS.replace("minth=9p", "minth=9p, min_th=8p"))
    assert canonical(sj.load(file)) == canonical(Draft.read(file))


def test_an_invalid_file_is_refused(tmp_path: Path) -> None:
    """With its name and the path of the value."""
    file = tmp_path / "bad.toml"
    file.write_text(FORMS.replace('"5mbit"', '"5"', 1))
    with pytest.raises(sj.InputError, match=r'bad\.toml: links\.up\.rate: "5" has no unit'):
        sj.load(file)


def test_every_function_takes_every_form(small: Path) -> None:
    """A loaded scenario, a mapping and the path give the same result."""
    forms: list[Any] = [sj.load(small), Draft.read(small).tree, str(small), small]
    first, *others = [sj.simulate(form).summary for form in forms]
    assert all(other == first for other in others)
    assert canonical(sj.load(small)) == canonical(small)
    one, two = (sj.compare(form, ["codel"])["codel"][0].summary for form in forms[:2])
    assert one == two


def test_a_scenario_is_changed_by_copying(small: Path) -> None:
    """`replace` leaves the original as it is; None restores the default."""
    case = sj.load(small)
    changed = case.replace(seed=7)
    assert (case.seed, changed.seed) == (1, 7)
    assert changed.replace(seed=None).seed == 1
    assert sj.CoDel(target="5ms").replace(target="9ms") == sj.CoDel(target="9ms")
