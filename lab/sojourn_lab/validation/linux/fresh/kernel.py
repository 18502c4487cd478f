"""A Linux kernel in user mode whose clock stands still while it computes.

It is built from Debian's package linux-source (6.1 or 6.12), in `target/linux`: Debian's own
user-mode-linux is configured without time travel. It has the qdiscs, TCP's congestion controls,
network namespaces, veth, TUN and netem. The changes below make its clock exact, and the random
numbers of `cake` known; they repair its heap, and give older kernels the exact inverse roots of
newer ones.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sojourn_lab import ROOT

ROOM = ROOT / "target/linux"

SOURCES = Path("/usr/src")
"""Folder of Debian's source packages."""

PACKAGES = "linux-source, flex, bison, bc, xz-utils"

OPTIONS = """
64BIT UML_TIME_TRAVEL_SUPPORT HOSTFS PRINTK MULTIUSER BINFMT_ELF BINFMT_SCRIPT PROC_FS SYSFS
PROC_SYSCTL SYSCTL FUTEX EPOLL EVENTFD SIGNALFD TIMERFD POSIX_TIMERS HIGH_RES_TIMERS SHMEM TMPFS
FILE_LOCKING ADVISE_SYSCALLS TTY NULL_CHAN STDERR_CONSOLE NET UNIX PACKET INET NETDEVICES NET_CORE
VETH NET_SCHED NET_SCH_HTB NET_SCH_PRIO NET_SCH_RED NET_SCH_SFQ NET_SCH_DRR NET_SCH_CODEL
NET_SCH_FQ_CODEL NET_SCH_CAKE NET_SCH_PIE NET_SCH_FQ NET_SCH_NETEM NET_SCH_TBF PREEMPT_NONE
NAMESPACES NET_NS TUN TCP_CONG_ADVANCED TCP_CONG_CUBIC TCP_CONG_DCTCP TCP_CONG_BBR
TCP_CONG_VEGAS TCP_CONG_BIC TCP_CONG_WESTWOOD TCP_CONG_HTCP TCP_CONG_HSTCP TCP_CONG_HYBLA
TCP_CONG_NV TCP_CONG_SCALABLE TCP_CONG_LP TCP_CONG_VENO TCP_CONG_YEAH TCP_CONG_ILLINOIS
TCP_CONG_CDG
"""

RANDOM = """
#include <linux/moduleparam.h>

static unsigned int draws = 1;
module_param(draws, uint, 0644);
static unsigned long long dither;
module_param(dither, ullong, 0644);

static inline u32 known_u32(void)
{
\tdraws ^= draws << 13;
\tdraws ^= draws >> 17;
\tdraws ^= draws << 5;
\treturn draws;
}

static inline u32 known_u16(void)
{
\tu64 x = dither += 0x9e3779b97f4a7c15ULL;

\tx = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
\tx = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
\treturn (x ^ (x >> 33)) >> 48;
}
"""
"""Random numbers of `cake`: xorshift32 for BLUE, and the generator of our dither."""

CLOCK = "arch/um/include/linux/time-internal.h"
TIMER = "arch/um/kernel/time.c"
CALLS = "arch/um/kernel/skas/syscall.c"
CAKE = "net/sched/sch_cake.c"
TICKS = "arch/um/Kconfig"
NEWTON = "\t\tcobalt_newton_step(&v);\n\n"
"""Not in Linux 6.12, which has a table of exact inverse roots."""

READING = "time_travel_update_time_rel(TIMER_MULTIPLIER);"
"""Time that a reading of the clock takes in virtual time."""

CHANGES = (
    (TICKS, "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 1000\n"),
    (CLOCK, "TIMER_MULTIPLIER 256", "TIMER_MULTIPLIER 1"),
    (CLOCK, "TIMER_MIN_DELTA  500", "TIMER_MIN_DELTA 1"),
    (TIMER, "delta += 1;", ""),
    (TIMER, READING, ";"),
    (CALLS, "um_udelay(1);", ";"),
    (CAKE, "#include <net/netlink.h>", "#include <net/netlink.h>\n#include <net/known_random.h>"),
    (CAKE, "get_random_u32()", "known_u32()"),
    (CAKE, "\tget_random_u16()", "\tknown_u16()"),
    (CAKE, "\t\t\ti = m;\n", "\t\t\ti = m;\n\t\t\tmb = cake_heap_get_backlog(q, i);\n"),
    (CAKE, NEWTON, "\t\tfor (int i = 0; i < 8; i++)\n\t\t\tcobalt_newton_step(&v);\n"),
)
"""File, what is replaced in it, and by what: a jiffy is a millisecond; the clock counts nanoseconds
instead of steps of 256; a timer is neither early nor late; neither a reading of the clock nor a
failed call takes time.

`cake` keeps its queues in a heap to find the longest one when the memory is full. As it moves a
queue down, it goes on comparing with the length of the one that moved up, so that it stops after
one level, and a queue that is not the longest may lose its packet. Which one depends on hashes with
a secret key. Here it compares with the queue that moves."""


LIVE = tuple(
    (name, old, new.replace("1000", "250") if name == TICKS else new)
    if old != READING
    else (name, old, "time_travel_update_time_rel(256);")
    for name, old, new in CHANGES
)
"""Changes for live runs in virtual time: the usual 250 ticks per second, and a reading of the clock
takes 256 ns, since threads wait for packets in a loop that reads it."""


class NoKernelError(Exception):
    """The kernel cannot be built here."""


def source() -> Path:
    """Return the newest archive of Debian's linux-source."""
    archives = sorted(SOURCES.glob("linux-source-*.tar.*"))
    if not archives:
        raise NoKernelError(f"{SOURCES} has no linux-source: install {PACKAGES}")
    return archives[-1]


def kernel(*, live: bool = False) -> Path:
    """Return the kernel, built if there is none yet: some ten minutes of processor time.

    With `live`, it is the one for live runs in virtual time.
    """
    archive = source()
    folder = ROOM / (archive.name.split(".tar")[0] + ("-live" if live else ""))
    binary = folder / "linux"
    if not binary.exists():
        if missing := [one for one in ("flex", "bison", "bc", "gcc") if not shutil.which(one)]:
            raise NoKernelError(f"{', '.join(missing)} not found: install {PACKAGES}")
        build(archive, folder, LIVE if live else CHANGES)
    return binary


def build(archive: Path, folder: Path, changes: Sequence[tuple[str, str, str]]) -> None:
    """Unpack, change, configure and compile the kernel."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = ["tar", "xf", str(archive), "--strip-components=1"]
    subprocess.run(command, cwd=folder, check=True)
    for name, old, new in changes:
        text = (folder / name).read_text()
        if old not in text and old != NEWTON:
            raise NoKernelError(f"{archive.name}: {name} has no {old!r}")
        (folder / name).write_text(text.replace(old, new))
    (folder / "include/net/known_random.h").write_text(RANDOM)
    wanted = "".join(f"CONFIG_{name}=y\n" for name in OPTIONS.split())
    (folder / "wanted").write_text(wanted)
    make = ["make", "-s", "ARCH=um"]
    environment = {**os.environ, "KCONFIG_ALLCONFIG": "wanted"}
    subprocess.run([*make, "allnoconfig"], cwd=folder, env=environment, check=True)
    config = (folder / ".config").read_text()
    if lacking := [line for line in wanted.splitlines() if f"{line}\n" not in config]:
        raise NoKernelError(f"{archive.name} has no {', '.join(lacking)}")
    subprocess.run([*make, f"-j{os.cpu_count()}"], cwd=folder, check=True)
