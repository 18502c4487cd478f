"""Build csg-htsim and ns-3 with programs that run a list of flows, and measure runs of them.

Nothing of either is in this repository. csg-htsim is cloned at a fixed commit, or copied from a
folder; ns-3 is Debian's package libns3-dev.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sojourn_lab import ROOT
from sojourn_lab.speed import workloads
from sojourn_lab.speed.peers.work import K, Work

HERE = Path(__file__).parent
FOLDER = ROOT / "target" / "peers"

HTSIM_URL = "https://github.com/Broadcom/csg-htsim.git"
HTSIM_COMMIT = "841d9e7be46bb968eece766aa4b6c044c7799f67"
NO_HTSIM = (
    f"csg-htsim is left out: {HTSIM_URL} cannot be cloned; give a copy (a checkout or a folder of "
    "git) with HTSIM=/path"
)
NS3_LIBRARIES = (
    "applications", "internet", "point-to-point", "bridge", "traffic-control", "network", "stats",
    "core",
)  # fmt: skip
NO_NS3 = "ns-3 is left out: it cannot be built with; on Debian run apt-get install libns3-dev"


class MissingError(Exception):
    """A simulator is not available; the message says what to do."""


@dataclass(frozen=True)
class Run:
    """Packet-hops of a run, and processor time of its set-up and of itself in seconds."""

    hops: int
    setup_s: float
    run_s: float

    @property
    def rate(self) -> float:
        """Packet-hops per second, without the set-up."""
        return self.hops / self.run_s


def parse(printed: str) -> Run:
    """Read the last line that a program printed: JSON."""
    values = json.loads(printed.strip().splitlines()[-1])
    setup_s = values["setup_s"] if "setup_s" in values else values["read_s"]
    return Run(int(values["hops"]), float(setup_s), float(values["run_s"]))


def call(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command; its output is shown only if it fails."""
    return subprocess.run([*map(str, command)], cwd=cwd, check=True, capture_output=True, text=True)


def copy_htsim(source: Path | None, folder: Path) -> None:
    """Copy the folder `sim` of csg-htsim from a path, or clone it."""
    if source and (source / "sim").is_dir():
        shutil.copytree(source / "sim", folder, dirs_exist_ok=True)
        return
    git = FOLDER / "csg-htsim.git"
    try:
        if source is None:
            git.mkdir(parents=True, exist_ok=True)
            call("git", "init", "--quiet", "--bare", git)
            call("git", f"--git-dir={git}", "fetch", "--depth=1", HTSIM_URL, HTSIM_COMMIT)
        archive = folder.with_suffix(".tar")
        call("git", f"--git-dir={source or git}", "archive", f"--output={archive}",
             f"{HTSIM_COMMIT}:sim")  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        call("tar", "xf", archive, "-C", folder)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingError(NO_HTSIM) from error


def build_htsim(source: Path | None) -> Path:
    """Build the program for csg-htsim; its library is built once, in target/peers.

    Raises
    ------
    MissingError
        If its source is not available.
    """
    folder, program = FOLDER / "csg-htsim", FOLDER / "htsim"
    library = folder / "libhtsim.a"
    if not library.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        copy_htsim(source, folder)
        call("make", "-j2", "libhtsim.a", "CFLAGS=-std=c++11 -O3 -w -fPIE", cwd=folder)
    tree = folder / "datacenter"
    parts = [tree / f"{part}.cpp" for part in ("fat_tree_topology", "fat_tree_switch", "firstfit",
                                               "connection_matrix")]  # fmt: skip
    call("g++", "-std=c++14", "-O3", "-w", f"-I{folder}", f"-I{tree}", HERE / "htsim.cc", *parts,
         library, "-o", program)  # fmt: skip
    return program


def ns3_libraries(build: Path) -> list[Path]:
    """Return the libraries in the folder of a build of ns-3.

    Raises
    ------
    MissingError
        If one is not there.
    """
    profile = r"(-(debug|default|release|optimized|minsizerel|relwithdebinfo))?"
    files = sorted(build.glob("lib/libns3*.so"))
    libraries = []
    for name in NS3_LIBRARIES:
        pattern = re.compile(rf"libns3[.\d]*(-dev)?-{name}{profile}\.so")
        library = next((file for file in files if pattern.fullmatch(file.name)), None)
        if library is None:
            raise MissingError(f"ns-3 is left out: {build} has no lib/libns3-{name}.so")
        libraries.append(library)
    return libraries


def build_ns3(build: Path | None) -> Path:
    """Build the program for ns-3: Debian's, or a build with the folders `include` and `lib`.

    Raises
    ------
    MissingError
        If ns-3 is not there.
    """
    program = FOLDER / "ns3"
    FOLDER.mkdir(parents=True, exist_ok=True)
    if build is None:
        options: list[object] = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    else:
        options = [f"-I{build}/include", f"-Wl,-rpath,{build}/lib", *ns3_libraries(build)]
    try:
        call("g++", "-std=c++17", "-O3", HERE / "ns3.cc", "-o", program, *options)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingError(NO_NS3) from error
    return program


def ns3_version(build: Path | None) -> str:
    """Return what was measured of ns-3, for the page."""
    if build:
        return f"the build of `{ns3_libraries(build)[0].name}`"
    try:
        version = call("dpkg-query", "-W", "-f", "${Version}", "libns3-dev").stdout
    except (OSError, subprocess.CalledProcessError):
        version = "of unknown version"
    return f"Debian's package libns3-dev {version}, which has logging compiled in"


def command(simulator: str, program: Path, work: Work, file: Path) -> list[object]:
    """Write the input of a simulator; return the command that runs it."""
    if simulator == "sojourn":
        return [program, workloads.write(work.scenario, file)]
    file.write_text(work.flows)
    if simulator == "ns-3":
        return [program, K, work.us, file]
    return [program, K**3 // 4, work.tcp, work.queues, work.acks, work.us, file]


def measure_in_turns(commands: dict[str, list[object]], turns: int) -> dict[str, Run]:
    """Run each command in turns; return the fastest run of each."""
    best: dict[str, Run] = {}
    for _ in range(turns):
        for name, line in commands.items():
            run = parse(call(*line).stdout)
            best[name] = min(run, best.get(name, run), key=lambda run: run.run_s)
    return best
