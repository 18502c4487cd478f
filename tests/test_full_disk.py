"""Output that cannot be written: a full disk is one line and exit code 1, a URL is refused."""

import errno
import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import sojourn as sj
from conftest import Command
from sojourn._util import files
from sojourn._util.files import OutputError
from support.sweep_cases import AXES, CASE, command


class Full(io.BytesIO):
    """A file on a full disk."""

    def write(self, data: Any) -> int:
        """Fail like the kernel."""
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every new file one on a full disk."""
    create = files.create_temporary

    def failing(path: Path) -> tuple[Path, BinaryIO]:
        part, file = create(path)
        file.close()
        return part, Full()

    monkeypatch.setattr(files, "create_temporary", failing)


COMMANDS = {
    "run --out": ("run", "{small}", "--out", "{out}/run"),
    "run --plot": ("run", "{small}", "--plot", "{out}/figure.png"),
    "run --mahimahi": ("run", "{small}", "--mahimahi", "{out}/log"),
    "compare --out": ("compare", "{small}", "--qdisc", "droptail,red", "--out", "{out}/both"),
    "compare --export": ("compare", "{small}", "--qdisc", "red,pie", "--export", "{out}/table.tex"),
}


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("case", COMMANDS)
def test_a_full_disk_is_one_line(case: str, small: Path, tmp_path: Path, sojourn: Command) -> None:
    """With the path and the reason; no temporary file stays."""
    out = tmp_path / "out"
    out.mkdir()
    code, _, err = sojourn(*(one.format(small=small, out=out) for one in COMMANDS[case]))
    assert code == 1, err
    assert err.startswith(f"sojourn: {out}")
    assert err.endswith(": no space left on device\n")
    assert err.count("\n") == 1
    assert [path for path in out.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("ending", ["csv", "parquet", "tex"])
def test_an_export_to_a_full_disk(
    ending: str, tmp_path: Path, sojourn: Command, request: pytest.FixtureRequest
) -> None:
    """Of stored results."""
    sj.sweep(CASE, AXES, out=tmp_path / "runs")
    request.getfixturevalue("full")
    file = tmp_path / f"table.{ending}"
    code, _, err = sojourn("results", tmp_path / "runs", "--export", file)
    assert (code, err) == (1, f"sojourn: {file}: no space left on device\n")
    assert not file.exists()


def test_a_limit_of_file_size_is_one_line(small: Path, tmp_path: Path) -> None:
    """The error of the kernel itself, in a process of its own."""
    script = " ".join(command("run", small, "--out", tmp_path / "out", "--packet-log"))
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; ulimit -f 8; exec {script}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr == f"sojourn: {tmp_path / 'out'}: file too large\n"
    assert [path for path in (tmp_path / "out").glob("*") if path.is_file()] == []


URLS = ("s3://bucket/x", "gs://bucket/x", "file:///tmp/x", "https://example.org/x")


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("case", COMMANDS)
def test_a_url_is_refused_before_any_run(
    case: str, url: str, small: Path, tmp_path: Path, sojourn: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """No local folder with its name is created."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = sojourn(*(one.format(small=small, out=url) for one in COMMANDS[case]))
    assert (code, out) == (2, "")
    assert err.startswith(f"sojourn: {url}".replace(":///", "://"))
    assert "is a URL; write to a local path" in err
    assert sorted(tmp_path.iterdir()) == before


WRITERS: dict[str, Callable[[str], object]] = {
    "compare": lambda out: sj.compare(CASE, ["codel", "pie"], out=out),
    "save": lambda out: sj.simulate(CASE).save(out),
    "evaluate": lambda out: sj.evaluate("codel", only=["A1"], quick=True, out=out),
    "save_scenario": lambda out: sj.save_scenario(sj.Scenario(**CASE), f"{out}.toml"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_python_refuses_a_url_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function that writes, except sweeps, which write to object storage."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sj.InputError, match="is a URL"):
        WRITERS[name]("s3://bucket/x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("full")
def test_python_gets_an_error_of_the_operating_system(tmp_path: Path) -> None:
    """With its number and the path."""
    with pytest.raises(OutputError) as caught:
        sj.simulate(CASE).save(tmp_path / "run")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "run")
