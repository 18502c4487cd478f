"""Metrics, each defined once: definition, unit, source.

Every function takes a Result. `METRICS` holds them by name; docs/metrics.md and `sojourn list
metrics` show them. Summaries cover the time after the scenario's warm-up; a metric that needs
`sample` or `tape` says so. Where there is nothing to measure (no packet, no loss, no finished
transfer) the value is None. A source "paper ID" is a paper of `sojourn list papers`.
"""

# isort: off
# In the order in which METRICS and `sojourn list metrics` have them.
from sojourn.metrics.registry import *  # noqa: F403
from sojourn.metrics.throughput import *  # noqa: F403
from sojourn.metrics.loss import *  # noqa: F403
from sojourn.metrics.delay import *  # noqa: F403
from sojourn.metrics.completion import *  # noqa: F403
from sojourn.metrics.dynamics import *  # noqa: F403
