"""Metrics, each defined once: what it is, its unit, and where it is from.

Every function takes a Result; `sojourn list metrics` shows them, `METRICS` holds them by name.
Summaries are of the time after the scenario's warm-up; what needs the series or the tape says so.
Where there is nothing to measure (no packet, no loss, no finished transfer) the value is None.
The sources name sections of the project's reference (metrics.md), and of RFC 7928 as we remember
its contents: the reference could not check the numbers.
"""

# isort: off
# In the order in which METRICS and `sojourn list metrics` have them.
from sojourn.metrics.registry import *  # noqa: F403
from sojourn.metrics.throughput import *  # noqa: F403
from sojourn.metrics.loss import *  # noqa: F403
from sojourn.metrics.delay import *  # noqa: F403
from sojourn.metrics.completion import *  # noqa: F403
from sojourn.metrics.dynamics import *  # noqa: F403
