"""Output files: symbolic links of other users are not followed, devices are not replaced."""

import ast
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pytest

import sojourn
from conftest import Command
from live_link import ENVIRONMENT, lacking, link
from sojourn import InputError
from sojourn._util import files
from sojourn.sweeps import store

ARRIVALS = "i,t_us,flow,size_B\n1,0,1,1500\n2,100,1,1500\n"

SWEEP = """
scenario = "small.toml"
seeds = 2
[axes]
qdisc = { set = "up.qdisc", values = ["droptail", "codel"] }
"""

PRECIOUS = "precious\n"

COMMANDS = {
    "new": ["new", "uplink", "OUT/case.toml"],
    "replay": ["replay", "arrivals.csv", *"--qdisc codel --rate 1mbit --out OUT/o.csv".split()],
    "replay gz": ["replay", "arrivals.csv", *"--qdisc codel --rate 1mbit --out OUT/o.gz".split()],
    "run": ["run", "small.toml", "--out", "OUT/run", "--packet-log"],
    "run plot": ["run", "small.toml", "--plot", "OUT/run.svg", "--set", "sample=10ms"],
    "compare": ["compare", "small.toml", "--qdisc", "codel,pie", "--out", "OUT/compare"],
    "sweep": ["sweep", "sweep.toml", "--out", "OUT/sweep"],
    "results csv": ["results", "results", "--export", "OUT/table.csv"],
    "results parquet": ["results", "results", "--export", "OUT/table.parquet"],
    "results tex": ["results", "results", "--export", "OUT/table.tex"],
    "plot": [
        "plot",
        "results",
        "--y",
        "utilisation",
        "--kind",
        "ecdf",
        "--by",
        "qdisc",
        "--out",
        "OUT/plot.png",
    ],
}
"""Commands that write files into the folder OUT."""

OPTIONS = {
    "jsonl": ["--log", "OUT/log.jsonl"],
    "parquet": ["--log", "OUT/log.parquet"],
    "pcap": ["--pcap", "OUT/packets.pcapng"],
    "packet log": ["--packet-log", "OUT/packets"],
    "watch": ["--watch-to", "OUT/watch"],
}
"""Options of a live link that write files into the folder OUT."""


@pytest.fixture
def place(tmp_path: Path, small: Path, sojourn: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with inputs, a precious file, and an empty folder OUT; return OUT."""
    monkeypatch.chdir(tmp_path)
    Path("arrivals.csv").write_text(ARRIVALS)
    Path("sweep.toml").write_text(SWEEP)
    Path("precious").write_text(PRECIOUS)
    assert sojourn("sweep", "sweep.toml", "--out", "results")[0] == 0
    out = tmp_path / "OUT"
    out.mkdir()
    return out


@pytest.fixture
def exchange(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Replace every new temporary file by a symbolic link, as its owner's rival could.

    Return the names of the replaced files.
    """
    names: list[Path] = []
    create = files.create_temporary

    def exchanged(path: Path) -> tuple[Path, BinaryIO]:
        name, file = create(path)
        names.append(name)
        name.unlink()
        name.symlink_to(tmp_path / "precious")
        return name, file

    for module in (files, store):
        monkeypatch.setattr(module, "create_temporary", exchanged)
    return names


@pytest.mark.parametrize("name", COMMANDS)
def test_links_in_place_of_the_outputs_are_replaced(
    name: str, place: Path, sojourn: Command
) -> None:
    """All outputs of a first call are replaced by links, then the command is repeated."""
    assert sojourn(*COMMANDS[name])[0] == 0
    outputs = [path for path in place.rglob("*") if path.is_file()]
    for path in outputs:
        path.unlink()
        path.symlink_to(place.with_name("precious"))
    sojourn(*COMMANDS[name], *(["--force"] if name != "plot" and "results" not in name else []))
    assert place.with_name("precious").read_text() == PRECIOUS
    assert outputs


@pytest.mark.parametrize("name", COMMANDS)
def test_a_temporary_file_that_is_exchanged_is_not_followed(
    name: str, place: Path, sojourn: Command, exchange: list[Path]
) -> None:
    """The output was opened before, and is not opened again by name."""
    sojourn(*COMMANDS[name])
    assert place.with_name("precious").read_text() == PRECIOUS
    assert stat.S_IMODE(place.with_name("precious").stat().st_mode) == 0o644
    assert exchange


@pytest.mark.live
@pytest.mark.parametrize("name", OPTIONS)
def test_links_in_place_of_the_outputs_of_a_live_link_are_replaced(
    name: str, tmp_path: Path
) -> None:
    """The output is written, and the precious file is not."""
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.write_text(PRECIOUS)
    options = [word.replace("OUT", str(out)) for word in OPTIONS[name]]
    out.mkdir()
    targets = [Path(options[1])]
    if name == "packet log":
        targets[0].mkdir()
        targets = [targets[0] / f"{direction}.csv" for direction in ("up", "down")]
    for target in targets:
        target.symlink_to(precious)
    done = link(["--rate", "10mbit", *options], ["sleep", "0.2"])
    assert done.returncode == 0, done.stderr
    assert precious.read_text() == PRECIOUS
    for target in targets:
        assert not target.is_symlink()
        assert target.stat().st_size > 0
    assert {path.name for path in out.rglob("*") if path.is_file()} == {t.name for t in targets}


RIVAL = """
import os, sys
folder, precious = sys.argv[1:]
print("ready", flush=True)
while True:
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        if not name.startswith(".") or os.path.islink(path):
            continue
        try:
            os.rename(path, path + ".away")
            os.symlink(precious, path)
        except OSError:
            pass
"""
"""Exchanges every temporary file of its folder for a symbolic link, as fast as possible."""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or bool(lacking("setpriv")),
    reason="requires root and setpriv",
)
def test_another_user_cannot_redirect_the_output_of_root(tmp_path: Path) -> None:
    """Root writes into a folder of the other user, who exchanges files meanwhile."""
    folder, precious = tmp_path / "theirs", tmp_path / "precious"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid():
            path.chmod(path.stat().st_mode | 0o111)
    precious.write_text(PRECIOUS)
    precious.chmod(0o600)
    arrivals = tmp_path / "arrivals.csv"
    arrivals.write_text(ARRIVALS)
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    words = ["-c", RIVAL, str(folder), str(precious)]
    with subprocess.Popen([*user, sys.executable, *words], stdout=-1, text=True) as rival:
        assert rival.stdout is not None
        assert rival.stdout.readline() == "ready\n"
        for _ in range(200):
            with suppress(InputError), files.replacing(folder / "o.csv") as file:
                file.write(b"output\n" * 1000)
            with suppress(InputError), files.filling(folder, ("a",), lambda _: True) as create:
                create("a").write(b"output\n" * 1000)
            with suppress(InputError), files.open_new(folder / "log") as file:
                file.write(b"output\n" * 1000)
        rival.kill()
    assert precious.read_text() == PRECIOUS
    assert stat.S_IMODE(precious.stat().st_mode) == 0o600


def test_temporary_names_are_random_and_short(tmp_path: Path) -> None:
    """They cannot be predicted from the process and the time, and names of 255 bytes work."""
    names = set()
    for path in [tmp_path / "o.csv"] * 3 + [tmp_path / ("\u00e9" * 127)]:
        with files.replacing(path) as file:
            file.write(b"x")
            [name] = [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")]
            names.add(name)
            assert str(os.getpid()) not in name.split(".")
    assert len(names) == 4
    assert all(len(name.encode()) < 255 for name in names)


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    """As for any other new file."""
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "a", "text")
        with files.filling(tmp_path / "d", ("b",), lambda _: True) as create:
            create("b").write(b"x")
        files.open_new(tmp_path / "c").close()
    finally:
        os.umask(before)
    for path in ("a", "d/b", "c"):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == 0o640


@contextmanager
def _opened(how: str, path: Path) -> Iterator[BinaryIO]:
    if how == "replacing":
        with files.replacing(path) as file:
            yield file
    else:
        with files.filling(path.parent, (path.name, "b"), lambda _: True) as create:
            yield create(path.name)


@pytest.mark.parametrize("how", ["replacing", "filling"])
def test_nothing_is_left_if_writing_fails(how: str, tmp_path: Path) -> None:
    """The earlier file stays as it was."""
    old = tmp_path / "a"
    old.write_text("old")

    def fail() -> None:
        with _opened(how, old) as file:
            file.write(b"new")
            raise OSError(28, "No space left on device")

    with pytest.raises(files.OutputError, match="No space left"):
        fail()
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_in_place_of_which_a_directory_stands_is_refused(tmp_path: Path) -> None:
    """Nothing else is left."""
    (tmp_path / "log").mkdir()
    with pytest.raises(InputError, match="directory"):
        files.open_new(tmp_path / "log")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def _through_a_pipe(path: Path, write: Callable[[], None]) -> bytes:
    """Return what arrives at the pipe `path` while `write` runs."""
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write()
    reader.join()
    return read[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="requires named pipes")
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_not_replaced(linked: bool, tmp_path: Path) -> None:
    """Also through a link of the same user."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = tmp_path / "link" if linked else pipe
    if linked:
        path.symlink_to(pipe)
    files.check_file(path)
    assert _through_a_pipe(pipe, lambda: files.write_text(path, "text")) == b"text"

    def stream() -> None:
        with files.open_new(path) as file:
            file.write(b"stream")

    assert _through_a_pipe(pipe, stream) == b"stream"
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="requires /dev/shm")
@pytest.mark.parametrize("linked", [False, True])
def test_files_in_memory_are_replaced(linked: bool) -> None:
    """Like those on a disk: a file in /dev/shm was appended to when it was written again."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder, "summary.json")
        if linked:
            path.symlink_to(Path(folder, "other"))
            Path(folder, "other").write_text("{}")
        for text in ('{"a": 1}', "{}"):
            files.check_file(path)
            files.write_text(path, text)
            with files.open_new(Path(folder, "table.csv")) as file:
                file.write(text.encode())
            assert path.read_text() == Path(folder, "table.csv").read_text() == text


@pytest.mark.skipif(not Path("/dev/stdout").is_symlink(), reason="requires /dev/stdout")
@pytest.mark.parametrize("redirected", [False, True])
def test_dev_stdout_is_standard_output(redirected: bool, tmp_path: Path) -> None:
    """Also if it is a regular file, which is appended to and not replaced."""
    user: list[str] = []
    if os.geteuid() == 0:
        if lacking("setpriv"):
            pytest.skip("requires setpriv, to drop rights")
        # Without rights: if this failed, root would replace /dev/stdout.
        user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534"]
    line = [*user, sys.executable, "-c", "import sys; from pathlib import Path\n"]
    line[-1] += "from sojourn._util import files\nfiles.check_file(Path('/dev/stdout'))\n"
    line[-1] += "print('first', flush=True)\nfiles.write_text(Path('/dev/stdout'), 'text')"
    read, write = os.pipe()
    if redirected:
        os.close(write)
        write = os.open(tmp_path / "redirected", os.O_WRONLY | os.O_CREAT)
    if os.geteuid() == 0:
        os.fchown(write, 65534, 65534)
    done = subprocess.run(line, stdout=write, stderr=-1, env=ENVIRONMENT, check=False)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = (tmp_path / "redirected").read_bytes() if redirected else pipe.read()
    assert done.stderr == b""
    assert data == b"first\ntext"
    assert Path("/dev/stdout").is_symlink()


NAMED = {
    "chmod",
    "mkdtemp",
    "mkstemp",
    "rmtree",
    "touch",
    "write_bytes",
    "write_text",
}
"""Functions that open or change a file by its name."""

ALLOWED = {
    "live/marks.py": {"write_text"},
    "live/netdev.py": {"write_text"},
    "live/netns_init.py": {"chmod", "write_text"},
    "live/testbed.py": {"write_text"},
    "sweeps/remote.py": {"mkdtemp", "rmtree"},
}
"""Settings below /proc/sys, files in a file system that nobody else can reach, a folder of one's
own."""


def _writes(tree: ast.AST) -> set[str]:
    """Return the functions in `tree` that open or change a file by its name."""
    calls = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        modes = [
            word.value
            for word in [*node.args, *(keyword.value for keyword in node.keywords)]
            if isinstance(word, ast.Constant) and isinstance(word.value, str)
        ]
        if name in NAMED and isinstance(node.func, ast.Attribute):
            calls.add(name)
        if name == "open" and any(set(mode) & set("wax") and len(mode) < 4 for mode in modes):
            calls.add(name)
    return calls


def test_all_files_are_written_through_the_same_functions() -> None:
    """The functions of `_util/files.py`, which do not follow symbolic links."""
    package = Path(sojourn.__file__).parent
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name == "_util/files.py":
            continue
        calls = _writes(ast.parse(path.read_text(encoding="utf-8")))
        assert calls <= ALLOWED.get(name, set()), name
    assert _writes(ast.parse("p.open('w'); open('x', mode='ab'); p.chmod(1)")) == {"open", "chmod"}
