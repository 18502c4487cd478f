"""Files of flow sizes: all forms of the field's files, their means, and faults by file and line."""

from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn._util import size_table


def scenario(size: str) -> dict[str, Any]:
    """Transfers of these sizes on one link."""
    flow = {"name": "load", "path": ["a"], "source": {"name": "poisson", "size": size}}
    return {"duration": "100ms", "links": {"a": {"rate": "1gbit"}}, "flows": [flow]}


def points_of(size: str) -> str:
    """Return the canonical form of sizes."""
    text: str = sj.simulate(scenario(size)).scenario["flows"][0]["source"]["size"]
    return text


FORMS = {
    "per cent": ("0 0\n10000 15\n20000 100\n", "", "0B 0, 10kB 0.15, 20kB 1"),
    "shares": ("10000 0.15\n20000 1\n", "", "0B 0, 10kB 0.15, 20kB 1"),
    "commas": ("# bytes\n0,0\n10000,0.5 # x\n\n20000,1\n", "", "0B 0, 10kB 0.5, 20kB 1"),
    "packets": ("1 1 0\n2 2 0.5\n10 10 1\n", "", "1460B 0, 2920B 0.5, 14600B 1"),
    "packets of a size": ("1 0\n10 1\n", ", packet=1442B", "1442B 0, 14420B 1"),
    "steps after a mean": ("150\n100 0.5\n200 1\n", "", "100B 0, 100B 0.5, 200B 0.5, 200B 1"),
    "a mean, linear": ("150\n100 0.5\n200 1\n", ", linear", "0B 0, 100B 0.5, 200B 1"),
    "steps": ("0 0\n100 50\n200 100\n", ", step", "0B 0, 100B 0, 100B 0.5, 200B 0.5, 200B 1"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_read(form: str, tmp_path: Path) -> None:
    """As the points that a file means, with its name; the canonical scenario is read again."""
    text, options, points = FORMS[form]
    (tmp_path / "sizes.txt").write_text(text)
    size = points_of(f"cdf({tmp_path / 'sizes.txt'}{options})")
    assert size == f"cdf(sizes.txt: {points})"
    assert points_of(size) == size


FAULTS = {
    "no such file": (None, "", "no such file or directory"),
    "words": ("0 0\nbytes 5\n", "", 'line 2: "bytes 5" is no size and share'),
    "smaller size": ("0 0\n100 50\n90 100\n", "", "line 3: a size or a share is below"),
    "smaller share": ("0 0\n100 50\n190 40\n200 100\n", "", "line 3: a size or a share is below"),
    "no end": ("0 0\n100 50\n190 99\n", "", "line 3: the last share is 99, not 100"),
    "columns": ("0 0\n100 50 3\n190 100\n", "", "line 2: 3 numbers, not a size and a share"),
    "empty": ("# nothing\n", "", "0 lines, allowed: 1 to 10000"),
    "negative": ("-1 0\n100 1\n", "", "line 1: \"-1 0\" has a number out of range"),
    "infinite": ("0 0\ninf 1\n", "", "line 2: \"inf 1\" has a number out of range"),
    "option": ("0 0\n5 1\n", ", steps", 'unknown option "steps" (known: packet=BYTES, step'),
    "bare number": ("0 0\n5 1\n", ", packet=1442", 'unknown option "packet=1442" (known'),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    """With the flow, the file and the line."""
    text, options, message = FAULTS[fault]
    file = tmp_path / "sizes.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(sj.InputError) as caught:
        sj.simulate(scenario(f"cdf({file}{options})"))
    assert str(caught.value).startswith("flows.load.source: ")
    assert message in str(caught.value)
    assert "sizes.txt" in str(caught.value)


def test_the_report_names_the_file_and_its_mean(tmp_path: Path, sojourn: Command) -> None:
    """Relative to the scenario; a stored result says it too."""
    (tmp_path / "sizes.txt").write_text("0 0\n1000000 50\n3000000 100\n")
    file = tmp_path / "load.toml"
    file.write_text(
        'duration = "100ms"\n[links.a]\nrate = "1gbit"\n[[flows]]\nname = "load"\npath = ["a"]\n'
        'source = "poisson(load=500mbit, size=cdf(sizes.txt))"\n'
    )
    code, out, _ = sojourn("run", file, "--out", tmp_path / "result")
    assert code == 0
    assert "load: sizes of sizes.txt, mean 1.25 MB\n" in out
    again = sj.load_result(tmp_path / "result").scenario["flows"][0]["source"]
    assert [*size_table.tables_of(again)] == [("sizes.txt", 1_250_000)]


def test_classes_take_files(tmp_path: Path) -> None:
    """They are read with the scenario, not when the object is made."""
    source = sj.source.Poisson(load="500mbit", size=f"cdf({tmp_path / 'later.txt'})")
    (tmp_path / "later.txt").write_text("0 0\n1000 1\n")
    flow = sj.Flow(name="load", path=["a"], source=source)
    links = {"a": sj.Link(rate="1gbit")}
    result = sj.simulate(sj.Scenario(duration="100ms", links=links, flows=[flow]))
    assert result.scenario["flows"][0]["source"]["size"] == "cdf(later.txt: 0B 0, 1kB 1)"
