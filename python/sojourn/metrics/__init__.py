"""Metrics, each defined once: definition, unit, source.

The first argument of every function is a `Result`. `METRICS` has the functions by name;
docs/reference/metrics.md and `sojourn list metrics` list them. Summaries cover the time after the
warm-up of the scenario. The value is None if there is nothing to measure (no
packet, no loss, no finished transfer). The source "paper ID" is a paper of `sojourn list papers`.

Common arguments:

- `link`: name of a link;
- `group`: name of a group of flows, the `name` of a table of the scenario; None for all flows;
- `flow`: name of a flow. The only flow of a group has the group's name; otherwise flows are
  `GROUP.0`, `GROUP.1`, ...

Raises KeyError for an unknown link, flow or group, and for a metric that requires `sample` or
`packet_log` if the scenario has not set it. Each metric states what it requires.
"""

# isort: off
# In the order in which METRICS and `sojourn list metrics` have them.
from sojourn.metrics.registry import *  # noqa: F403
from sojourn.metrics.throughput import *  # noqa: F403
from sojourn.metrics.loss import *  # noqa: F403
from sojourn.metrics.delay import *  # noqa: F403
from sojourn.metrics.completion import *  # noqa: F403
from sojourn.metrics.media import *  # noqa: F403
from sojourn.metrics.dynamics import *  # noqa: F403
