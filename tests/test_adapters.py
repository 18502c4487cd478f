"""Adapters to other projects: the relay on asyncio, and rules for all of them."""

import asyncio
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.embed import TimedLink

ROOT = Path(__file__).parent.parent
ADAPTERS = ROOT / "adapters"
LINES_MAX = 150

FOLDERS = sorted(path.name for path in ADAPTERS.iterdir() if path.is_dir())


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the module of the relay."""
    monkeypatch.syspath_prepend(ADAPTERS / "asyncio")
    yield importlib.import_module("relay")
    del sys.modules["relay"]


class Socket(asyncio.DatagramProtocol):
    """Socket that keeps what arrives, with the times, and can echo it."""

    def __init__(self, echoes: bool = False) -> None:
        self.arrivals: list[tuple[float, bytes]] = []
        self.echoes = echoes

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        """Keep a datagram."""
        self.arrivals.append((asyncio.get_running_loop().time(), data))
        if self.echoes:
            self.transport.sendto(data, address)


async def socket(**options: Any) -> Socket:
    """Return a new socket of the loopback device."""
    loop = asyncio.get_running_loop()
    echoes = options.pop("echoes", False)
    options = options or {"local_addr": ("127.0.0.1", 0)}
    _, protocol = await loop.create_datagram_endpoint(lambda: Socket(echoes), **options)
    return protocol


def address(transport: Any) -> tuple[str, int]:
    """Return the address of a transport."""
    host, port = transport.get_extra_info("sockname")
    return host, port


def test_the_asyncio_relay_delays_datagrams_and_returns_answers_to_their_clients(
    relay: Any,
) -> None:
    """Two clients, 15 ms per direction."""

    async def run() -> None:
        server = await socket(echoes=True)
        links = [TimedLink[Any]("codel", rate="10mbit", delay="15ms") for _ in range(2)]
        transport = await relay.relay(("127.0.0.1", 0), address(server.transport), *links)
        clients = [await socket(remote_addr=address(transport)) for _ in range(2)]
        start = asyncio.get_running_loop().time()
        for n, client in enumerate(clients):
            client.transport.sendto(b"ping %d" % n)
        while not all(client.arrivals for client in clients):
            await asyncio.sleep(0.005)
            assert asyncio.get_running_loop().time() < start + 20
        for n, client in enumerate(clients):
            at, data = client.arrivals[0]
            assert data == b"ping %d" % n
            assert at - start >= 0.03
        for one in (server, *clients):
            one.transport.close()
        transport.close()
        await asyncio.sleep(0.01)

    asyncio.run(run())


def test_a_thin_flow_waits_less_in_fair_queues(relay: Any) -> None:
    """A burst of 100 kB is 100 ms at 8 Mbit/s; a datagram after it waits, or is served next."""

    async def wait_s(qdisc: str) -> float:
        server = await socket()
        up = TimedLink[Any](qdisc, rate="8mbit")
        down = TimedLink[Any]("droptail", rate="8mbit")
        transport = await relay.relay(("127.0.0.1", 0), address(server.transport), up, down)
        bulk, thin = [await socket(remote_addr=address(transport)) for _ in range(2)]
        for client in (bulk, thin):
            client.transport.sendto(b"hello")  # the relay connects
        while len(server.arrivals) < 2:
            await asyncio.sleep(0.005)
        for _ in range(100):
            bulk.transport.sendto(bytes(972))
        await asyncio.sleep(0.005)
        start = asyncio.get_running_loop().time()
        thin.transport.sendto(b"thin")
        while not (thin_at := [at for at, data in server.arrivals if data == b"thin"]):
            await asyncio.sleep(0.0005)
            assert asyncio.get_running_loop().time() < start + 20
        for one in (server, bulk, thin):
            one.transport.close()
        transport.close()
        await asyncio.sleep(0.01)
        return thin_at[0] - start

    tail, fair = (asyncio.run(wait_s(name)) for name in ("droptail", "fq_codel"))
    assert tail > 0.05
    assert fair < tail / 2


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_adapter_is_short_and_documented(folder: str) -> None:
    """At most 150 lines, and a section of the page that links to it."""
    page = (ROOT / "docs/how-to/adapters.md").read_text()
    assert f"(../../adapters/{folder}/" in page
    if folder in ("quic-study", "go"):  # the transfers of a study; a package
        return
    sources = [
        path
        for pattern in ("src/*.rs", "*.py", "*.h", "*.c")
        for path in (ADAPTERS / folder).glob(pattern)
        if path.name != "test.c"
    ]
    assert 0 < sum(len(path.read_text().splitlines()) for path in sources) <= LINES_MAX


def test_adapters_use_the_library_only_and_are_no_part_of_its_workspace() -> None:
    """The library keeps its few dependencies; an adapter needs neither simulator nor live link."""
    root = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert not [member for member in root["members"] if "adapters" in member]
    workspace = tomllib.loads((ADAPTERS / "Cargo.toml").read_text())["workspace"]
    crates = {path.parent.name for path in ADAPTERS.glob("*/Cargo.toml")}
    assert set(workspace["members"]) == crates
    paths = {spec["path"] for spec in workspace["dependencies"].values() if isinstance(spec, dict)}
    assert {path for path in paths if path.startswith("..")} == {"../crates/aqm"}
    for crate in crates:
        assert not re.search(r"path = ", (ADAPTERS / crate / "Cargo.toml").read_text())
