"""Fresh arrivals through a kernel and through ours: what can be tested without the kernel."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sojourn_lab import ROOT
from sojourn_lab.validation.linux.fresh import __main__ as fresh
from sojourn_lab.validation.linux.fresh import arrivals, kernel, systems


def test_arrivals_of_a_seed_are_those_of_the_page() -> None:
    """Times rise, sizes and flows are in range; another seed gives other arrivals."""
    for pattern in arrivals.PATTERNS:
        rows = np.array(arrivals.rows(pattern, 1))
        assert np.all(np.diff(rows[:, 0]) > 0), pattern
        assert set(rows[:, 1]) == set(range(1, arrivals.FLOWS + 1))
        assert arrivals.SHORTEST <= rows[:, 2].min() <= rows[:, 2].max() <= arrivals.LONGEST
        assert arrivals.rows(pattern, 1) == arrivals.rows(pattern, 1) != arrivals.rows(pattern, 2)


def test_loads_of_the_patterns() -> None:
    """1.15 times the link; 1.08 where it grows from 0.5 to 2 frame by frame."""
    for pattern, load in (("poisson", 1.15), ("ramp", 1.08)):
        rows = np.array(arrivals.rows(pattern, 3))
        offered = rows[:, 2].sum() * 8e6 / arrivals.RATE_KBPS / rows[-1, 0]
        assert offered == pytest.approx(load, rel=0.05), pattern


def test_states_of_the_generators() -> None:
    """The first number of xorshift32 from 12345, by hand, as a share of 2^32, in binary64."""
    x = 12_345
    x = (x ^ x << 13) & 0xFFFF_FFFF
    x ^= x >> 17
    x = (x ^ x << 5) & 0xFFFF_FFFF
    state, dither = systems.draws()
    assert state == x
    assert np.uint64(dither).view(np.float64) == x / 2**32


def test_a_recording_is_read(tmp_path: Path) -> None:
    """A frame that left marked, one that was dropped, one that left as it came."""
    path = tmp_path / "made.out"
    path.write_text("5 7 3\n9 -1 0\n12 512007 2\n")
    recording = fresh.recording([(5, 1, 100, 2), (9, 2, 200, 184), (12, 1, 300, 2)], path)
    assert recording.fate.tolist() == [1, 2, 0]
    assert recording.out_ns.tolist() == [7, -1, 512_007]
    assert recording.ecn.tolist() == [2, 0, 2]


def test_without_the_source_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line, and no page is written."""
    monkeypatch.setattr(kernel, "SOURCES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["fresh", "--out", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit, match=r"no linux-source: install linux-source, flex, bison, bc"):
        fresh.main()
    assert not (tmp_path / "page.md").exists()


def test_the_help_needs_no_kernel() -> None:
    """`--help` ends with 0."""
    command = [sys.executable, "-m", "sojourn_lab.validation.linux.fresh", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--seed" in done.stdout
