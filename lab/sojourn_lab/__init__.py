"""Evidence for sojourn: papers, comparisons with other systems, studies, speed, mutation testing.

Texts in `reports/` are written by this package; `make help` lists the targets.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository, if the package is installed from one (`make demo`)."""
