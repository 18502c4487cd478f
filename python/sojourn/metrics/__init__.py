"""Metrics, each defined once: definition, unit, source.

Every function takes a Result. `METRICS` holds them by name; docs/metrics.md and `sojourn list
metrics` list them. Summaries cover the time after the warm-up of the scenario; a metric that needs
`sample` or `tape` says so. The value is None if there is nothing to measure (no packet, no loss, no
finished transfer). A source "paper ID" is a paper of `sojourn list papers`.
"""

# isort: off
# In the order in which METRICS and `sojourn list metrics` have them.
from sojourn.metrics.registry import *  # noqa: F403
from sojourn.metrics.throughput import *  # noqa: F403
from sojourn.metrics.loss import *  # noqa: F403
from sojourn.metrics.delay import *  # noqa: F403
from sojourn.metrics.completion import *  # noqa: F403
from sojourn.metrics.dynamics import *  # noqa: F403
