"""Plugin of pytest: tests of programs behind an emulated link.

The fixture `sojourn_link` has two network namespaces, `client` and `server`, joined by the link
that the mark `line` describes: a line by name (`sojourn line list`), options of `sojourn link`, or
both. A test is skipped, with the reason, where no namespaces can be made; with
`--sojourn-required` it fails.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sojourn.live.pair import LinkedPair

MARK = (
    "line(name=None, *, seed=1, up={}, down={}, **options): link of the fixture sojourn_link: a "
    "line by name, like lte; options of `sojourn link`, like rate, delay, qdisc, loss; up and down "
    "have options of one direction"
)

NO_RIGHT = (
    "no right to create network namespaces: run pytest as root, or by "
    "`unshare --user --map-root-user --net pytest`"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that turns skips into failures."""
    parser.getgroup("sojourn").addoption(
        "--sojourn-required",
        action="store_true",
        help="fail a test of sojourn_link, instead of skipping it, where no link can be made",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", MARK)


@pytest.fixture
def sojourn_link(request: pytest.FixtureRequest) -> "Iterator[LinkedPair]":
    """Two network namespaces joined by the link that the mark `line` describes.

    The value has `client` and `server`, each with its `address`; `run` and `popen` start a program
    there; `with sojourn_link.client:` moves the test there. `stop()` ends the link and returns a
    report.
    """
    name, seed, options = _asked(request)
    if not sys.platform.startswith("linux"):
        _unavailable(request, "real packets require Linux")
    from sojourn.live.pair import linked_pair

    spec = _spec(name, options)
    with ExitStack() as stack:
        with _skipping(request):
            pair = stack.enter_context(linked_pair(spec, seed=seed))
        yield pair
        for warning in pair.stop().warnings:
            request.node.add_report_section("teardown", "sojourn_link", f"not trusted: {warning}")


def _asked(request: pytest.FixtureRequest) -> tuple[str | None, int, dict[str, Any]]:
    """Return the name of the line, the seed and the options, of the mark or of the parameter."""
    mark = request.node.get_closest_marker("line")
    param = getattr(request, "param", None)
    if param is not None:
        name = param if isinstance(param, str) else None
        options = dict(param) if isinstance(param, Mapping) else {}
        name = options.pop("line", name)
    elif mark is not None:
        name, options = (mark.args[0] if mark.args else None), dict(mark.kwargs)
        name = options.pop("name", name)
    else:
        pytest.fail(
            'sojourn_link: the test has no line: mark it, like @pytest.mark.line("lte") or '
            '@pytest.mark.line(rate="10mbit", delay="20ms")',
            pytrace=False,
        )
    return name, options.pop("seed", 1), options


def _spec(name: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the canonical links of a line, changed by options; fail the test if they are wrong."""
    from sojourn._sojourn import InputError
    from sojourn._util.inputs import near, shown
    from sojourn.cli.link_options import KEYS, links_of

    ways = {way: options.pop(way, {}) for way in ("up", "down")}
    settings = options.pop("set", {})
    try:
        for key in options:
            if key not in KEYS:
                known = (*KEYS, "set", "up", "down", "seed")
                raise InputError(f"unknown option {shown(key)}{near(key, known)}")
        own = {way: _words(table) for way, table in ways.items()}
        shared = {key: _text(value) for key, value in options.items()}
        return links_of(shared, _words(settings), own, name)
    except InputError as error:
        pytest.fail(f"pytest.mark.line: {str(error).removeprefix('--')}", pytrace=False)


@contextmanager
def _skipping(request: pytest.FixtureRequest) -> Iterator[None]:
    """Skip the test, or fail it if links are required, where a right or a tool is missing."""
    from sojourn._sojourn import InputError
    from sojourn.live.netdev import NoRightError

    try:
        yield
    except NoRightError:
        _unavailable(request, NO_RIGHT)
    except InputError as error:
        _unavailable(request, str(error))


def _unavailable(request: pytest.FixtureRequest, reason: str) -> None:
    if request.config.getoption("--sojourn-required"):
        pytest.fail(f"no link here: {reason}", pytrace=False)
    pytest.skip(f"no link here: {reason}")


def _words(table: Mapping[str, Any]) -> list[str]:
    """Return KEY=VALUE for each value of a table."""
    return [f"{key}={_text(value)}" for key, value in table.items()]


def _text(value: Any) -> str:
    """Return a value as on the command line: text, or TOML."""
    from sojourn.scenario.save import inline

    return value if isinstance(value, str) else inline(value)
