"""A kernel as a program: runs shell commands under Debian's user-mode-linux, without rights.

The kernel sees the files of this machine, boots in about two seconds, and ends by itself.
"""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

KERNEL = "linux.uml"
NEEDED = {KERNEL: "user-mode-linux", "insmod": "kmod", "tc": "iproute2", "ip": "iproute2"}
"""Programs, with their Debian packages."""

PLAIN_CODE = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-BMI2,-XSAVEC,-XSAVE"
"""glibc without vector registers that the old interface of ptrace does not save."""

LIMIT_S = 300
"""Longest run of a kernel; a guard against one that hangs."""

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
{load}
echo BEGIN
{script}
echo END
{python} -c "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"
"""

LOAD = """modules=$(dirname "$(readlink -f /usr/lib/uml)")/uml/modules/$(uname -r)/kernel
insmod "$modules/drivers/net/dummy.ko" numdummies=0
for module in "$modules"/net/sched/sch_*.ko; do insmod "$module"; done
ip link add dum0 type dummy
ip link set dum0 up"""
"""Commands before the script, for Debian's kernel."""


def missing() -> list[str]:
    """Return the Debian packages that are not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return sorted({p for name, p in NEEDED.items() if shutil.which(name, path=path) is None})


def run(
    script: str,
    folder: Path,
    kernel: str = "",
    options: Sequence[str] = (),
    *,
    vectors: bool = False,
    limit_s: float = LIMIT_S,
) -> str:
    """Return the output of a shell script under a kernel.

    Debian's kernel, if `kernel` is empty, has all its qdiscs loaded, and a device `dum0`. With
    `vectors`, programs may use vector registers, which Python and numpy need; this requires a
    processor without AMX.
    """
    init = folder / "init.sh"
    text = INIT.replace("{load}", "" if kernel else LOAD).replace("{script}", script)
    init.write_text(text.replace("{python}", sys.executable))
    init.chmod(0o755)
    memory = "mem=1G" if kernel else "mem=128M"
    hidden = [] if vectors else [sys.executable, __file__]
    command = [*hidden, kernel or KERNEL, memory, "rootfstype=hostfs"]
    command += [
        *options,
        "rootflags=/",
        "rw",
        f"init={init}",
        "quiet",
        "con=null",
        "con0=null,fd:1",
    ]
    command += [f"GLIBC_TUNABLES={PLAIN_CODE}"]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=limit_s,
        env={**os.environ, "HOME": str(folder), "TMPDIR": str(folder)},
        check=False,
    )
    text = done.stdout.replace("\r", "")
    if "\nBEGIN\n" not in text or "\nEND\n" not in text:
        raise RuntimeError(f"the kernel did not run the script:\n{text[-2000:]}")
    return text.split("\nBEGIN\n", 1)[1].split("\nEND\n", 1)[0]


def _hide_vector_registers() -> None:
    """Let the kernel save only the registers that this program's ptrace can restore.

    user-mode-linux 6.1 has no room for the registers of processors with AMX. If its first question
    for them fails (seccomp: ptrace with PTRACE_GETREGSET and NT_X86_XSTATE), it uses the older
    interface, which always works.
    """
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    ptrace, getregset, xstate = 101, 0x4204, 0x202
    fails, passes = 0x00050000 | 22, 0x7FFF0000
    steps = [
        (load, 0, 0, 0),
        (jump_if_equal, 0, 5, ptrace),
        (load, 0, 0, 16),
        (jump_if_equal, 0, 3, getregset),
        (load, 0, 0, 32),
        (jump_if_equal, 0, 1, xstate),
        (answer, 0, 0, fails),
        (answer, 0, 0, passes),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(steps), ctypes.addressof(code))
    no_new_privileges, set_seccomp, filtered = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.prctl(set_seccomp, filtered, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    _hide_vector_registers()
    os.execvp(sys.argv[1], sys.argv[1:])
