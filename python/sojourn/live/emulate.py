"""Run a scenario on real packets: the kernel's TCP and UDP over emulated links (Linux).

The Result has the columns and metrics of a simulation. Links are measured by the links themselves,
in virtual time. Packets sent, retransmitted and lost are counted by the network between the hosts.
Goodput, completion times and delays of datagrams are measured at the sockets, as an application
sees them. The kernel reports congestion windows and timeouts (TCP_INFO).
"""

import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from sojourn import _sojourn
from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util.progress import Meter, visible
from sojourn._util.public import public
from sojourn._util.units import seconds
from sojourn.live import netdev, testbed
from sojourn.live.flow_stats import Row
from sojourn.live.kernel_config import Plan, plan
from sojourn.live.link import LATE_S, UNDELIVERED, end_realtime, start_in_realtime
from sojourn.live.traffic import TrafficGenerator
from sojourn.result.result import Array, Result
from sojourn.result.select import nearest_rank
from sojourn.scenario.advice import warn
from sojourn.scenario.draft import Described, canonical, parse

_LOOK_S = 0.1
"""Interval between updates of the progress, in seconds."""


@public
def emulate(
    scenario: Described,
    *,
    progress: bool | Callable[[float], bool | None] = False,
    command: Sequence[str] = (),
) -> Result:
    """Run `scenario` on real packets, in real time.

    Parameters
    ----------
    scenario
        A Scenario, a mapping, or the name of a file.
    progress
        True shows a progress bar on a terminal. A function is called ten times a second with the
        share of the time that has passed; it stops the run by returning False.
    command
        The command line, stored with the result.

    Returns
    -------
    Result
        Reasons not to trust its numbers are in `result.summary["live"]["warnings"]`.

    Raises
    ------
    InputError
        If the kernel cannot run the scenario, or a program or device is missing.
    NoRightError
        If the process has no right to create network namespaces.
    KeyboardInterrupt
        If `progress` returned False.
    """
    if not sys.platform.startswith("linux"):
        raise InputError("real packets require Linux")
    parsed = parse(scenario)
    tree = canonical(parsed)
    if "warm_from" in tree:
        raise InputError("warm_from: real packets have no state to start from; leave it out")
    how = plan(tree)
    warn([tree])
    netdev.check_tools()
    _allow_sockets()
    traffic = TrafficGenerator(tree, parsed, how)
    ended: list[tuple[str, dict[str, Array]]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            ended.append(_run(traffic, parsed, how))
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)

    # A separate thread, since it stays in the network namespace that it enters.
    thread = threading.Thread(target=work, name="sojourn-traffic")
    shown = progress is True and visible()
    end_ns = seconds(tree["duration"]) * 1e9
    with Meter([seconds(tree["duration"])], shown, word="run on real packets") as meter:
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_LOOK_S)
                share = min(1.0, traffic.now_ns / end_ns)
                meter.update(0, share, 0)
                if callable(progress) and progress(share) is False:
                    raise KeyboardInterrupt
        finally:
            traffic.ended = True
            thread.join()
    if errors:
        raise errors[0]
    [(summary, columns)] = ended
    return _result(tree, traffic, json.loads(summary), columns, command)


def _allow_sockets() -> None:
    """Raise the limit of descriptors as far as allowed: each connection needs two."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _run(
    traffic: TrafficGenerator, parsed: ParsedScenario, how: Plan
) -> tuple[str, dict[str, Array]]:
    """Create the testbed, run, and remove it; return summary and columns of the links."""
    with ExitStack() as stack:
        try:
            spaces = [stack.enter_context(testbed.namespace()) for _ in testbed.BLOCKS]
            devices: list[int] = []
            for end, space in reversed(list(enumerate(spaces))):
                routes = [(host.there, host.back)[end] for host in how.hosts]
                devices.insert(0, testbed.furnish(end, space, how.sysctls, routes))
                stack.callback(os.close, devices[0])
        except netdev.NoTunError as error:
            raise InputError(f"real packets require TUN devices: {error}") from None
        except OSError as error:
            raise InputError(f"cannot create the networks: {error.strerror or error}") from None
        realtime = start_in_realtime()
        try:
            between = _sojourn.Network(devices[0], devices[1], parsed)
        finally:
            end_realtime()
        try:
            traffic.run((spaces[0], spaces[1]), between)
            missed = [0, 0]
            for end, space in enumerate(spaces):
                _sojourn.enter_network(space)
                missed[end] = netdev.dropped(netdev.NEAR)
        finally:
            summary, columns = between.stop()
        tree = json.loads(summary)
        tree["live"] |= {"kernel_dropped_packets": sum(missed), "realtime": realtime}
        return json.dumps(tree), columns


def _result(
    scenario: dict[str, Any],
    traffic: TrafficGenerator,
    report: dict[str, Any],
    columns: dict[str, Array],
    command: Sequence[str],
) -> Result:
    """Return the result of a run, from `report` (summary of the links) and the statistics."""
    window_s = seconds(scenario["duration"]) - seconds(scenario["warmup"])
    rows, completions = traffic.script.finish()
    flows = json.loads(rows)
    for flow, row, (sent, again, lost) in zip(flows, traffic.rows, report["sent"], strict=True):
        flow["goodput_bps"] = (row.delivered - row.delivered_before) * 8 / window_s
        flow |= {"kind": "tcp" if row.tcp else "udp", "sent_packets": sent}
        flow |= {"retransmitted_packets": again, "timeouts": row.timeouts if row.tcp else 0}
        if not row.tcp:
            flow |= _datagrams(row, lost)
    for link in report["links"].values():
        link["goodput_bps"] = sum(flows[row]["goodput_bps"] for row in link.pop("rows"))
    live = report["live"]
    late = np.sort(traffic.lateness_s)
    for share, key in ((0.5, "application_p50_s"), (0.99, "application_p99_s")):
        live[key] = nearest_rank(late, share)
    live["warnings"] = _warnings(live, traffic)
    if "sample" in scenario:
        received = {key: columns.pop(key) for key in [*columns] if key.endswith("/received_bytes")}
        columns |= traffic.stats.columns(received, every_flow=scenario["sample_flows"])
    summary = {"flows": flows, "links": report["links"], "scenario": scenario, "live": live}
    return Result(json.dumps(summary), columns | completions, command)


def _datagrams(row: Row, lost: int) -> dict[str, Any]:
    """Return the statistics of datagrams of a row, of which `lost` were lost."""
    delays = np.array(row.delays_ns) / 1e9
    n = len(delays)
    jitter = float(np.diff(delays).std()) if n > 1 else None
    delays.sort()
    return {
        "received_packets": n,
        "lost_packets": lost,
        "loss_rate": lost / (lost + n) if lost + n else None,
        "delay_mean_s": float(delays.mean()) if n else None,
        "delay_p50_s": nearest_rank(delays, 0.5),
        "delay_p95_s": nearest_rank(delays, 0.95),
        "delay_p99_s": nearest_rank(delays, 0.99),
        "delay_max_s": float(delays.max()) if n else None,
        "jitter_s": jitter,
    }


def _warnings(live: Mapping[str, Any], traffic: TrafficGenerator) -> list[str]:
    """Return the reasons not to trust the numbers, and deviations from the scenario."""
    messages = list(traffic.plan.warnings)
    for key, what in (
        ("lateness_p99_s", "1 % of the packets were written more than {:.1f} ms late"),
        ("application_p99_s", "1 % of the application events were more than {:.1f} ms late"),
    ):
        if (late := live[key]) is not None and late > LATE_S:
            messages.append(what.format(late * 1e3))
    for key, what in (*UNDELIVERED, ("malformed_packets", "of no flow")):
        if live[key]:
            messages.append(f"{live[key]} packets were {what}")
    if live["failed"]:
        messages.append(f"the network stopped early: {live['failed']}")
    if any(row.timeouts is None for row in traffic.rows):
        messages.append("this kernel does not count timeouts (Linux 6.7 and newer do)")
    if traffic.failed:
        messages.append(f"{len(traffic.failed)} connections failed, the first: {traffic.failed[0]}")
    return messages
