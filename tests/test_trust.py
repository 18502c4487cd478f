"""Python code that a file names runs only with trust: every command and function that reads one."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn.custom import trust
from sojourn.recommendation import line
from sojourn.scenario.draft import Draft, canonical
from sojourn.sweeps.spec import read_sweep

MODULE = """\
import pathlib
import sojourn as sj

pathlib.Path({marker!r}).write_text("code ran")


class Queue(sj.Aqm):
    def on_enqueue(self, packet, queue):
        return None


class Control(sj.CongestionControl):
    def on_ack(self, connection):
        pass


class Traffic(sj.TrafficSource):
    def next_arrival(self, flow):
        return None
"""

PLAIN = {"qdisc": "codel", "tcp": "cubic", "source": "bulk"}
"""A scenario without code, by the keys that may name it."""

CLASSES = {"qdisc": "Queue", "tcp": "Control", "source": "Traffic"}

REFUSED = "it runs only with --trust (in Python: trust=True)"


class Evil:
    """Files in a folder that name a module, which writes a marker if it is executed."""

    def __init__(self, folder: Path, module: str) -> None:
        self.folder = folder
        self.marker = folder / "PWNED"
        self.module = module

    def name(self, key: str) -> str:
        """Return the name of the class for a key."""
        return f"{self.module}:{CLASSES[key]}"

    def tree(self, **named: Any) -> dict[str, Any]:
        """Return a scenario with links up and down, with `named` in place of `PLAIN`."""
        parts = {**PLAIN, **named}
        flow = {"path": ["up"], "return_path": ["down"], "rtt": "20ms"}
        flow |= {"tcp": parts["tcp"], "source": parts["source"]}
        links = {"up": {"rate": "1mbit", "qdisc": parts["qdisc"]}, "down": {"rate": "9mbit"}}
        return {"duration": "1s", "links": links, "flows": [{"name": "f", **flow}]}

    def write(self, tree: Any, name: str = "evil.json") -> Path:
        """Write a scenario to a file."""
        path = self.folder / name
        path.write_text(json.dumps(tree))
        return path

    def ran(self) -> bool:
        """Return True if the module was executed."""
        return self.marker.exists()


@pytest.fixture(params=["file", "module"])
def evil(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evil:
    """Return the files, for a module that is named by its file or can be imported."""
    stem = f"evil_{abs(hash(str(tmp_path))):x}"
    path = tmp_path / f"{stem}.py"
    path.write_text(MODULE.format(marker=str(tmp_path / "PWNED")))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Evil(tmp_path, path.name if request.param == "file" else stem)


@pytest.fixture(params=["text", "call", "table"])
def form(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Return a function from a name to a notation that a scenario accepts."""
    forms: dict[str, Callable[[str], Any]] = {
        "text": lambda name: name,
        "call": lambda name: f"{name}(limit=9p)" if "Queue" in name else f"{name}()",
        "table": lambda name: {"name": name},
    }
    return forms[request.param]


def refused(result: tuple[int, str, str], evil: Evil, key: str, file: Path) -> None:
    """Check that a command refused code in one line, which names file and code, and ran nothing."""
    code, _, err = result
    message = f"{json.dumps(evil.name(key))} is Python code that {file} names; {REFUSED}"
    assert (code, err.count("\n")) == (2, 1), err
    assert message in err
    assert str(file) in err
    assert not evil.ran()


@pytest.mark.parametrize("key", CLASSES)
def test_no_command_runs_code_of_a_scenario(
    sojourn: Command, evil: Evil, form: Callable[[str], Any], key: str, tmp_path: Path
) -> None:
    """Each command that reads a scenario refuses it, in each notation of the name."""
    file = evil.write(evil.tree(**{key: form(evil.name(key))}))
    line = ("recommend", "--down", "9mbit", "--up", "1mbit", "--rtt", "20ms")
    for arguments in (
        ("run", file),
        ("run", file, "--set", "duration=2s"),
        ("run", file, "--tc-stats"),
        ("run", file, "--engine", "live"),
        ("compare", file, "--qdisc", "codel,pie"),
        ("explain", file),
        *([] if key == "qdisc" else [(*line, "--traffic", file)]),
    ):
        refused(sojourn(*arguments), evil, key, file)
    code, out, err = sojourn("tc", "export", file)
    assert (code == 2 and "written in Python" in err) if key == "qdisc" else "htb rate 1mbit" in out
    assert not evil.ran()


@pytest.mark.parametrize("key", CLASSES)
def test_no_sweep_runs_code_of_a_file(sojourn: Command, evil: Evil, key: str) -> None:
    """A sweep file may name code in its axes, its scenario, or the scenario's file."""
    place = {"qdisc": "up.qdisc", "tcp": "f.tcp", "source": "f.source"}[key]
    name = evil.name(key)
    plain, other = evil.write(evil.tree(), "plain.json"), evil.write(evil.tree(**{key: name}))
    quoted, target = json.dumps(name), json.dumps(place)
    file = evil.folder / "sweep.toml"
    for text, culprit in (
        (f'scenario = "{plain.name}"\n[axes]\n{target} = ["{PLAIN[key]}", {quoted}]\n', file),
        (f'scenario = "{plain.name}"\n[axes]\n"{place}.name" = [{quoted}]\n', file),
        (
            f'scenario = "{plain.name}"\n[axes.x]\nset = {target}\nvalues = {{ y = {quoted} }}\n',
            file,
        ),
        (f'scenario = "{other.name}"\n[axes]\n"up.rate" = ["2mbit"]\n', other),
    ):
        file.write_text(text)
        refused(sojourn("sweep", file, "--out", evil.folder / "out"), evil, key, culprit)
        with pytest.raises(sj.InputError, match=re.escape(REFUSED)):
            read_sweep(file)
    assert not evil.ran()


@pytest.mark.parametrize("key", CLASSES)
def test_no_function_runs_code_of_a_scenario(evil: Evil, key: str) -> None:
    """Functions that take the path of a scenario refuse it, and run it with trust."""
    file = evil.write(evil.tree(**{key: evil.name(key)}))
    cases: list[Callable[[], object]] = [
        lambda: sj.load(file),
        lambda: sj.simulate(file),
        lambda: sj.simulate(Draft.read(file)),
        lambda: sj.simulate_many([file]),
        lambda: sj.Simulation(file),
        lambda: sj.compare(file, ["pie"]),
        lambda: sj.sweep(file, {"up.rate": ["1mbit", "2mbit"]}),
        lambda: sj.save_scenario(file, evil.folder / "copy.toml"),
        lambda: canonical(file),
        lambda: sj.draw(sj.simulate(str(file))),
        lambda: line.make("9mbit", "1mbit", "20ms", str(file)),
    ]
    for case in cases:
        with pytest.raises(sj.InputError, match=re.escape(REFUSED)):
            case()
    assert not evil.ran()
    assert list(sj.load(file, trust=True).links) == ["up", "down"]
    assert evil.ran()
    assert sj.simulate(sj.load(file)).scenario["duration"] == "1s"  # trusted in this process


def test_trust_runs_code(sojourn: Command, evil: Evil) -> None:
    """`--trust` and `trust=True` run what a file names."""
    file = evil.write(evil.tree(qdisc=evil.name("qdisc")))
    code, out, err = sojourn("run", file, "--trust")
    assert (code, err) == (0, "")
    assert "Queue" in out
    assert evil.ran()


def test_names_outside_of_files_run(sojourn: Command, evil: Evil) -> None:
    """Code that the command line or a program names runs, also if a file was read before."""
    named = evil.name("qdisc")
    file, plain = evil.write(evil.tree(qdisc=named)), evil.write(evil.tree(), "plain.json")
    assert sojourn("run", file)[0] == 2
    assert not evil.ran()
    code, _, err = sojourn("compare", plain, "--qdisc", f"codel,{named}")
    assert (code, err) == (0, "")
    assert evil.ran()


def test_trust_of_a_name_is_of_this_name() -> None:
    """A trusted name does not allow a name that it contains."""
    trust.read({"qdisc": "folder/none.py:Queue"}, "a.toml", trust=True)
    trust.named(["up.qdisc=other.py:Queue(limit=9p)"])
    trust.read({"qdisc": ["none.py:Queue", "none.py:Qu", "her.py:Queue", "OTHER.py:Queue"]}, "b")
    for name in ("folder/none.py:Queue", "other.py:Queue"):
        trust.check(name)
    for name in ("none.py:Queue", "none.py:Qu", "her.py:Queue", "OTHER.py:Queue"):
        with pytest.raises(sj.InputError, match="b names"):
            trust.check(name)


@pytest.mark.parametrize("option", ["--set", "--qdisc"])
def test_options_name_code(sojourn: Command, evil: Evil, option: str) -> None:
    """A class in an option runs."""
    plain, named = evil.write(evil.tree(), "plain.json"), evil.name("qdisc")
    words = ("--set", f"up.qdisc={named}") if option == "--set" else ("--qdisc", named)
    code, _, err = sojourn("run", plain, *words)
    assert (code, err) == (0, "")
    assert evil.ran()


def test_no_stored_result_runs_code(sojourn: Command, evil: Evil) -> None:
    """Results that name code are shown, drawn and explained without it, and run only with trust."""
    plain = evil.write({**evil.tree(), "sample": "10ms"}, "plain.json")
    run, comparison = evil.folder / "run", evil.folder / "comparison"
    assert sojourn("run", plain, "--out", run)[0] == 0
    assert sojourn("compare", plain, "--qdisc", "codel,pie", "--out", comparison)[0] == 0
    for folder in (run, *comparison.glob("codel*")):
        file = folder / "summary.json"
        summary = json.loads(file.read_text())
        summary["scenario"]["links"]["up"]["qdisc"] = {"name": evil.name("qdisc"), "limit": "99p"}
        summary["scenario"]["flows"][0]["tcp"] = {"name": evil.name("tcp"), "packet": "1500B"}
        file.write_text(json.dumps(summary))
    for folder in (run, comparison):
        for arguments in (
            ("explain", folder),
            ("results", folder),
            ("plot", folder, "--out", evil.folder / "figure.png"),
        ):
            code, _, err = sojourn(*arguments)
            assert (code, err) == (0, ""), arguments
    result = sj.load_result(run)
    assert result._repr_html_()
    assert sj.explain(result)
    assert sj.load_comparison(comparison)["codel"][0]._repr_html_()
    for again in (sj.simulate, sj.Simulation, canonical):
        with pytest.raises(sj.InputError, match=re.escape(REFUSED)):
            again(result.scenario)
    assert not evil.ran()
    sj.simulate(sj.load_result(run, trust=True).scenario)
    assert evil.ran()


def test_a_name_in_a_fresh_process(evil: Evil) -> None:
    """The command in a folder with the files, as a user runs it."""
    evil.write(evil.tree(qdisc=evil.name("qdisc")))
    program = Path(sys.executable).with_name("sojourn")
    environment = {**os.environ, "PYTHONPATH": str(evil.folder)}
    for more, code in (((), 2), (("--trust",), 0)):
        done = subprocess.run(
            [program, "run", "evil.json", *more], env=environment, capture_output=True, text=True
        )
        assert (done.returncode, evil.ran()) == (code, code == 0), done.stderr
