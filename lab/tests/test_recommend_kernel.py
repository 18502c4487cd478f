"""The commands of the recommendations of the docs are accepted by a kernel, both directions."""

import os
import platform
import re
from pathlib import Path

import pytest

from sojourn_lab import ROOT
from sojourn_lab.validation.linux import user_mode

if packages := user_mode.missing():
    reason = f"Debian's {', '.join(packages)} is not installed"
    if os.environ.get("CI") and platform.machine() == "x86_64":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)

PAGE = ROOT / "reports/recommendations/README.md"

MODULES = ("drivers/net/ifb", "net/sched/cls_matchall", "net/sched/act_mirred")
"""Modules for the download direction, in addition to the qdiscs."""

RESET = "tc qdisc del dev dum0 root; tc qdisc del dev dum0 ingress; ip link del ifb0"


def scripts() -> list[list[str]]:
    """Return the commands of each recommendation, for the device of the kernel."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    each = [block.replace("eth0", "dum0").splitlines() for block in blocks if "tc qdisc" in block]
    return [[line for line in lines if not line.startswith("#")] for lines in each]


def test_every_command_of_the_recommendations_is_accepted(tmp_path: Path) -> None:
    """Shaper, discipline, and the redirection of the download; the qdiscs are then installed."""
    base = "$(dirname $(readlink -f /usr/lib/uml))/uml/modules/$(uname -r)/kernel"
    parts = [f"insmod {base}/{name}.ko {'numifbs=0' * name.endswith('ifb')}" for name in MODULES]
    tried = scripts()
    assert len(tried) == 6
    for lines in tried:
        parts += [
            "echo ==",
            "worst=0",
            *(f"{{ {line}; }} </dev/null || worst=$?" for line in lines),
        ]
        parts += ["echo exit $worst", "tc qdisc show </dev/null", f"{{ {RESET}; }} 2>/dev/null"]
    answers = user_mode.run("\n".join(parts), tmp_path).split("==\n")[1:]
    assert len(answers) == len(tried)
    for lines, answer in zip(tried, answers, strict=True):
        assert "exit 0\n" in answer, f"{lines}\n{answer}"
        kind = lines[-1].split(" handle ")[1].split()[1]
        both = any("ifb0" in line for line in lines)
        assert len(re.findall(rf"^qdisc {kind} ", answer, re.MULTILINE)) >= (2 if both else 1)
