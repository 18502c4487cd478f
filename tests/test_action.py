"""The GitHub Action and the container file for tests behind a link."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from live_link import ENVIRONMENT, FAR, require

ROOT = Path(__file__).parent.parent
ACTION = ROOT / ".github/actions/link"
CONTAINER = ROOT / "containers/Containerfile"

INSTRUCTIONS = {"FROM", "ARG", "RUN", "WORKDIR", "ENTRYPOINT", "CMD"}
"""Instructions of a container file that this one uses; none copies files of a clone."""


def action() -> dict[str, Any]:
    """Return the contents of action.yml."""
    whole: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
    return whole


def lint(text: str, name: str) -> None:
    """Check a script with bash and with shellcheck, which must be there in CI."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    if shutil.which("shellcheck") is None and "CI" not in os.environ:
        pytest.skip("shellcheck is not installed")
    line = ["shellcheck", "--shell", "bash", "-"]
    done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name}: {done.stdout}"


def test_the_action_has_the_schema_of_composite_actions() -> None:
    """Each step names its shell; inputs and outputs have descriptions; no input is in a script."""
    whole = action()
    assert set(whole) == {"name", "description", "inputs", "outputs", "runs"}
    for name, one in whole["inputs"].items():
        assert one["description"], name
        assert ("default" in one) != one.get("required", False), name
        assert isinstance(one.get("default", ""), str), name
    assert whole["runs"]["using"] == "composite"
    passed: set[str] = set()
    for step in whole["runs"]["steps"]:
        assert set(step) <= {"id", "shell", "run", "env"}
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input in a script can run as code"
        script = re.fullmatch(r'bash "\$GITHUB_ACTION_PATH/([\w.]+)"', step["run"])
        assert script is not None
        assert (ACTION / script[1]).is_file()
        for name, value in step["env"].items():
            key = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)
            assert key is not None
            assert name in (ACTION / script[1]).read_text()
            passed.add(key[1])
    assert passed == set(whole["inputs"])
    assert whole["outputs"]["report"]["value"] == "${{ steps.link.outputs.report }}"


SCRIPTS = [*sorted(ACTION.glob("*.sh")), CONTAINER.parent / "check.sh"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_have_no_faults_that_linters_find(path: Path) -> None:
    """Quotes, unset variables, and the like."""
    lint(path.read_text(), path.name)


def ran(tmp_path: Path, **inputs: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the action's second step as a runner does; return it and its outputs."""
    place = tmp_path / "sojourn-link/bin"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "sojourn").exists():
        (place / "sojourn").write_text(f'#!/bin/sh\nexec {sys.executable} -m sojourn "$@"\n')
        (place / "sojourn").chmod(0o755)
    outputs = tmp_path / "outputs"
    outputs.write_text("")
    names = {f"SOJOURN_{key.upper()}": value for key, value in inputs.items()}
    runner = {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(outputs)}
    done = subprocess.run(
        ["bash", ACTION / "link.sh"],
        env={**ENVIRONMENT, **runner, **names},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, outputs.read_text()


def test_an_action_without_a_link_is_refused(tmp_path: Path) -> None:
    """With the message that GitHub shows at the step."""
    done, _ = ran(tmp_path, run="true")
    assert (done.returncode, done.stderr) == (2, "::error::give line, options or both\n")


def test_the_package_is_installed_once(tmp_path: Path) -> None:
    """By pip of an environment of its own; the stand-in for Python writes its arguments."""
    stand_in = tmp_path / "python3"
    stand_in.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/log
[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/sojourn"
exit 0
"""
    )
    stand_in.chmod(0o755)
    names = {"RUNNER_TEMP": str(tmp_path), "SOJOURN_PACKAGE": "sojourn @ file:///a b.whl"}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        line = ["bash", str(ACTION / "install.sh")]
        subprocess.run(line, env={**os.environ, **names, "PATH": path}, check=True)
    assert (tmp_path / "log").read_text().splitlines() == [
        f"-m venv {tmp_path}/sojourn-link",
        "-m pip install --quiet sojourn @ file:///a b.whl",
        "--version",
    ]


@pytest.mark.live
def test_the_action_runs_a_command_over_a_line(tmp_path: Path) -> None:
    """With options of a shell, the exit code of the command, and a report."""
    require("ping")
    done, outputs = ran(
        tmp_path,
        line="satellite",
        options="--up delay=20ms --loss '{ p = 0.0, r = 1.0 }'",
        run=f"ping -n -c 2 -i 0.1 {FAR} | grep time=\nexit 3",
    )
    assert done.returncode == 3, done.stderr
    times = [float(ms) for ms in re.findall(r"time=([\d.]+)", done.stdout)]
    assert len(times) == 2
    assert all(299 <= ms < 330 for ms in times)
    report = json.loads(Path(outputs.removeprefix("report=").strip()).read_text())
    assert report["exit_code"] == 3
    assert report["links"]["up"]["departed_packets"] == 2
    # A word is not run: `options` cannot leave its argument.
    done, _ = ran(tmp_path, options="--rate '$(touch x)'", run="true")
    assert done.returncode == 2
    assert "$(touch x)" in done.stderr


@pytest.mark.live
def test_the_action_fails_if_its_times_cannot_be_trusted(tmp_path: Path) -> None:
    """Here a fake command of sojourn writes such a report."""
    place = tmp_path / "sojourn-link/bin"
    place.mkdir(parents=True)
    report = '{"trusted": false, "warnings": ["up: late"]}'
    (place / "sojourn").write_text(f"#!/bin/sh\necho '{report}' > {tmp_path}/sojourn-link.json\n")
    (place / "sojourn").chmod(0o755)
    for trusted, code in (("false", 0), ("true", 1)):
        done, outputs = ran(tmp_path, line="lte", run="true", trusted=trusted)
        assert done.returncode == code
        assert "::warning::sojourn link: up: late" in done.stderr
        assert outputs.startswith("report=")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", CONTAINER.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def test_the_container_file_installs_what_a_link_needs() -> None:
    """Its shell is checked by linters; `make image-check` builds the image."""
    parts = instructions()
    assert {word for word, _ in parts} == INSTRUCTIONS
    assert parts[0][0] == "FROM"
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+-slim-\w+", parts[0][1])
    values = dict(parts)
    assert json.loads(values["ENTRYPOINT"]) == ["sojourn"]
    assert json.loads(values["CMD"]) == ["--help"]
    assert values["ARG"] == "PACKAGE=sojourn"
    # `ip` and `unshare` are required, `nft` by --nat, `ping` by examples.
    for package in ("iproute2", "util-linux", "nftables", "iputils-ping"):
        assert package in values["RUN"].split()
    assert '"$PACKAGE" "pytest>=8.3"' in values["RUN"]
    lint(f"PACKAGE=sojourn\n{values['RUN']}\n", "RUN")
