"""The plugin of pytest: tests with the fixture `sojourn_link`, run by a pytest of their own."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from live_link import require
from support.pages import blocks

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent

INSTALLED = any(one.name == "sojourn" for one in entry_points(group="pytest11"))
"""True if the installed package declares the plugin, as a wheel does."""

OPTIONS = ("-p", "no:cacheprovider", *(() if INSTALLED else ("-p", "sojourn.pytest_plugin")))

PING = """
import re
import pytest

def rtt_ms(link, count=5):
    line = ["ping", "-n", "-i", "0.02", "-c", str(count), link.server.address]
    done = link.client.run(line, capture_output=True, text=True, check=True)
    return float(re.search(r"= [\\d.]+/([\\d.]+)/", done.stdout)[1])
"""

TCP = """
import socket, threading, time
import pytest

def transfer(link, size):
    with link.server:
        listener = socket.create_server((link.server.address, 0))
    with link.client:
        sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    thread = threading.Thread(target=lambda: (sender.sendall(bytes(size)), sender.close()))
    start = time.monotonic()
    thread.start()
    count = 0
    while data := receiver.recv(65536):
        count += len(data)
    thread.join()
    receiver.close(); listener.close()
    assert count == size
    return count * 8 / (time.monotonic() - start)
"""


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    """Run the tests of `code` in a process of their own."""
    pytester.makepyfile(code)
    return pytester.runpytest_subprocess("--strict-markers", *OPTIONS, *options)


def test_the_wheel_declares_the_plugin_and_its_requirement() -> None:
    """So pytest finds it without a line in conftest.py."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"sojourn": "sojourn.pytest_plugin"}
    assert project["optional-dependencies"]["test"] == ["pytest>=8.3"]


def test_the_plugin_loads_without_the_live_link(pytester: pytest.Pytester) -> None:
    """A test suite that does not use it pays for two small modules only."""
    code = "import sys, sojourn.pytest_plugin; print('sojourn.live.link' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    listed = pytester.runpytest_subprocess("--markers", *OPTIONS)
    listed.stdout.fnmatch_lines(["@pytest.mark.line(name=None*"])


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("", "sojourn_link: the test has no line: mark it, like"),
        ('@pytest.mark.line("lt")', 'pytest.mark.line: profile: unknown line "lt", did you mean'),
        ('@pytest.mark.line(rate="5")', "pytest.mark.line: rate: "),
        ('@pytest.mark.line(rat="5mbit")', 'unknown option "rat", did you mean "rate"?'),
        ('@pytest.mark.line("lte", up={"rte": "5mbit"})', 'up rte=5mbit: unknown key "rte"'),
        ('@pytest.mark.line(delay="5ms")', "pytest.mark.line: rate: is missing"),
    ],
)
def test_wrong_marks_fail_with_one_line(pytester: pytest.Pytester, mark: str, message: str) -> None:
    """A wrong line is a fault of the test, so it is not skipped."""
    done = run(pytester, f"import pytest\n{mark}\ndef test_it(sojourn_link): pass\n")
    done.assert_outcomes(errors=1)
    assert message in done.stdout.str()


def test_missing_rights_skip_with_the_reason_or_fail(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a program is missing: the path has no `ip`."""
    monkeypatch.setenv("PATH", os.fspath(pytester.mkdir("empty")))
    code = 'import pytest\n@pytest.mark.line("lte")\ndef test_it(sojourn_link): pass\n'
    done = run(pytester, code, "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["*no link here: real packets require*"])
    done = pytester.runpytest_subprocess(*OPTIONS, "--sojourn-required")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*no link here: real packets require*"])


@pytest.mark.live
def test_programs_cross_the_link_of_the_mark(pytester: pytest.Pytester) -> None:
    """Options, a line by name changed by options, and a parameter in place of the mark."""
    require("ping", tun=True)
    done = run(
        pytester,
        PING
        + """
@pytest.mark.line(rate="20mbit", delay="15ms")
def test_delay(sojourn_link):
    assert 30 <= rtt_ms(sojourn_link) < 45

@pytest.mark.line("satellite", up={"delay": "20ms"})
def test_line(sojourn_link):
    assert 299 <= rtt_ms(sojourn_link, 2) < 320
    report = sojourn_link.stop()
    assert report.links["up"]["departed_packets"] == 2
    assert sojourn_link.stop() is report

@pytest.mark.parametrize("sojourn_link", ["datacentre", {"line": "dsl", "loss": 1}], indirect=True)
def test_parameter(sojourn_link):
    loses = sojourn_link.spec["up"]["loss"] == 1
    line = ["ping", "-n", "-c", "1", "-W", "1", sojourn_link.server.address]
    assert sojourn_link.client.run(line, capture_output=True).returncode == loses
""",
    )
    done.assert_outcomes(passed=4)


@pytest.mark.live
def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    """As docs/how-to/ci.md shows them."""
    require("ping", tun=True)
    done = run(pytester, blocks("python", "docs/how-to/ci.md")[2])
    done.assert_outcomes(passed=2)


@pytest.mark.live
def test_sockets_of_the_test_cross_the_link(pytester: pytest.Pytester) -> None:
    """A transfer takes the rate of its direction; the thread returns to its own network."""
    require(tun=True)
    done = run(
        pytester,
        TCP
        + """
@pytest.mark.line(rate="8mbit", delay="5ms", qdisc="fq_codel", down={"rate": "1mbit"}, seed=3)
def test_rate(sojourn_link):
    import os
    home = os.readlink("/proc/thread-self/ns/net")
    with sojourn_link.client, sojourn_link.server:
        inside = os.readlink("/proc/thread-self/ns/net")
    assert home == os.readlink("/proc/thread-self/ns/net") != inside
    assert 5e6 < transfer(sojourn_link, 1_000_000) < 8.1e6
    report = sojourn_link.stop()
    assert report.links["up"]["arrived_packets"] > 600
    assert report.links["down"]["arrived_packets"] > 100
""",
    )
    done.assert_outcomes(passed=1)


@pytest.mark.live
def test_nothing_is_left_after_a_failed_test(pytester: pytest.Pytester) -> None:
    """Not even if the test fails inside an end; the next test has a network of its own."""
    require(tun=True)
    done = run(
        pytester,
        """
import os, pytest
HOME = os.readlink("/proc/thread-self/ns/net")

@pytest.mark.line("lte")
def test_fails(sojourn_link):
    with sojourn_link.client:
        raise ValueError("here")

@pytest.mark.line("lte")
def test_home(sojourn_link):
    assert os.readlink("/proc/thread-self/ns/net") == HOME
    fds = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
           if os.path.exists(f"/proc/self/fd/{fd}")]
    assert sum(fd.startswith("net:") or "ns/net" in fd for fd in fds) == 2, fds
""",
    )
    done.assert_outcomes(passed=1, failed=1)
