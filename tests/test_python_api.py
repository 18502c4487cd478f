"""Names, types and completions of the package, as editors and type checkers see them."""

import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jedi
import pytest

import sojourn as sj
from test_generated import MODULES

PROGRAM = '''\
"""Program of a user with the common classes and functions."""

import sojourn as sj


def scenario(qdisc: sj.qdisc.Qdisc) -> sj.Scenario:
    """Return a bulk transfer and a call through one discipline."""
    uplink = sj.Link(rate="10mbit", qdisc=qdisc, loss="0.1%")
    bulk = sj.Flow(name="bulk", path=["up"], source=sj.Bulk(), rtt="50ms", tcp=sj.Cubic(rack=True))
    call = sj.Flow(name="call", path=["up"], source=sj.Cbr(rate="64kbit"), rtt="50ms")
    return sj.Scenario(duration="2s", sample="10ms", links={"up": uplink}, flows=[bulk, call])


case = scenario(sj.CoDel(target="20ms"))
target: str = sj.CoDel().target
seed: int = case.seed
result: sj.Result = sj.simulate(case.replace(seed=2))
delay_s: float = result.links["up"].sojourn_p99_s
runs = sj.compare(case, [sj.CoDel(), sj.qdisc.Red(gentle="buffer"), sj.FqCoDel()])
for name, results in runs.items():
    print(name, results[0].flows["bulk"].goodput_bps)
result.plot("run.png", title="Uplink").savefig("again.png")
runs.plot("runs.png")
runs.save("runs")
rows = sj.sweep(case, {"up.qdisc.target": ["5ms", "20ms"]}, seeds=2)
sj.plot(rows, y="utilisation", x="up.qdisc.target")
'''

WRONG = {
    "sj.CoDel(target=5)": "target",
    'sj.Red(gentle="sometimes")': "gentle",
    "sj.Link(qdisc=sj.CoDel())": "rate",
    'sj.Flow(name="a", path=["up"], cuont=2)': "cuont",
    "sj.simulat": "simulat",
    "sj.CoDel().target + 1": "",
}
"""Expressions that a type checker refuses, with a word of its message."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the program, and of each wrong expression."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "good.py").write_text(PROGRAM)
    for n, expression in enumerate(WRONG):
        (folder / f"wrong{n}.py").write_text(f"import sojourn as sj\n\nvalue = {expression}\n")
    return folder


def check(program: Path, *command: str) -> None:
    """Run a type checker on all files: only the wrong expressions have faults."""
    files = sorted(path.name for path in program.glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-m", *command, *files],
        cwd=program, capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    lines = [line for line in output.splitlines() if "error" in line]
    assert not [line for line in lines if "good.py" in line], output
    for n, word in enumerate(WRONG.values()):
        assert any(f"wrong{n}.py:3" in line and word in output for line in lines), output


def test_mypy_understands_a_program(program: Path) -> None:
    """In strict mode, with all parameters and results."""
    check(program, "mypy", "--strict", "--no-incremental", "--config-file=")


def test_pyright_understands_a_program(program: Path) -> None:
    """As mypy does. It needs Node, which its package brings or fetches."""
    pytest.importorskip("pyright")
    options = f'{{"pythonVersion": "3.11", "extraPaths": ["{Path(sj.__file__).parents[1]}"]}}'
    (program / "pyrightconfig.json").write_text(options)
    check(program, "pyright", f"--pythonpath={sys.executable}")


def completions(text: str) -> dict[str, str]:
    """Return name and type of each completion at the end of a program."""
    names = jedi.Script(f"import sojourn as sj\n{text}").complete()
    return {name.name: name.type for name in names}


def test_an_editor_completes_names() -> None:
    """Of the package, of its modules, and of the parameters of classes."""
    names = completions("sj.")
    assert set(sj.__all__) <= names.keys()
    assert (names["simulate"], names["Link"], names["qdisc"]) == ("function", "class", "module")
    assert {"CoDel", "Sfq", "DualPi2"} <= completions("sj.qdisc.").keys()
    assert {"target=", "interval=", "limit="} <= completions("sj.CoDel(").keys()
    assert {"min_th=", "limit=", "quantum=", "flows="} <= completions("sj.qdisc.FqRed(").keys()
    assert {"rate=", "delay=", "qdisc="} <= completions("sj.Link(").keys()
    assert {"rack=", "c="} <= completions("sj.Cubic(").keys()
    assert {"packet_log="} <= completions("sj.Scenario(").keys()


def test_an_editor_completes_members_of_results() -> None:
    """A result has its fields and methods."""
    assert {"links", "flows", "frame", "plot", "save"} <= completions(
        'result = sj.simulate("a.toml")\nresult.'
    ).keys()
    assert {"frame", "plot", "save"} <= completions('runs = sj.compare("a", [])\nruns.').keys()
    assert {"target", "replace"} <= completions("sj.CoDel().").keys()


@pytest.mark.parametrize("name", [name for name in sj.__all__ if name not in (*MODULES, "tc")])
def test_a_public_name_is_of_the_package(name: str) -> None:
    """Its module is the one that users import, and a pickle of it is the same object."""
    value: Any = getattr(sj, name)
    if callable(value):
        home = f"sojourn.{sj.COMMON[name]}" if name in sj.COMMON else "sojourn"
        assert value.__module__ == home or name in ("Bytes", "Duration", "Rate")
        assert pickle.loads(pickle.dumps(value)) is value
        if name != "InputError" and not name.endswith("Warning"):
            assert inspect.signature(value)


def test_objects_are_pickled_and_shown_by_public_names() -> None:
    """Scenarios cross processes; a repr can be evaluated."""
    flow = sj.Flow(name="f", path=["up"], source=sj.Cbr(), tcp=sj.NewReno(packet="1kB"))
    link = sj.Link(rate="1mbit", qdisc=sj.qdisc.Sfq(depth=64))
    case = sj.Scenario(duration="1s", links={"up": link}, flows=[flow])
    assert pickle.loads(pickle.dumps(case)) == case
    assert eval(repr(sj.Link(rate="1mbit", qdisc=sj.CoDel(target="9ms"))), vars(sj.qdisc) | {
        "Link": sj.Link
    }) == sj.Link(rate="1mbit", qdisc=sj.CoDel(target="9ms"))  # fmt: skip
    assert str(type(case)) == "<class 'sojourn.Scenario'>"
    assert str(type(link.qdisc)) == "<class 'sojourn.qdisc.Sfq'>"


def test_results_draw_and_save_themselves(small: Path, tmp_path: Path) -> None:
    """The methods write the same figures as the functions."""
    case = sj.load(small).replace(sample="10ms", duration="1500ms")
    result = sj.simulate(case)
    result.plot(tmp_path / "method.svg", flows=["bulk"], title="One")
    sj.draw(result, tmp_path / "function.svg", flows=["bulk"], title="One")
    assert (tmp_path / "method.svg").read_bytes() == (tmp_path / "function.svg").read_bytes()
    runs = sj.compare(case, ["codel", "droptail"])
    runs.plot(tmp_path / "method.svg", size="8x6in")
    sj.draw_comparison(runs, tmp_path / "function.svg", size="8x6in")
    assert (tmp_path / "method.svg").read_bytes() == (tmp_path / "function.svg").read_bytes()
