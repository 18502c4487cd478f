"""`sojourn playground`: its server, and the bytes of the module in Node and Chromium."""

import gzip
import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sojourn import InputError, _sojourn
from sojourn.cli.playground import HOST, TYPES, page_files, scenario_file, server

ROOT = Path(__file__).parent.parent
PARTS = ROOT / "playground/public"
NODE = shutil.which("node")
FOLDER = ROOT / "playground/tests"

needs_module = pytest.mark.skipif(
    not ((PARTS / "rest.wasm").exists() and NODE) and "SOJOURN_WASM" not in os.environ,
    reason="the module was not built (make wasm), or there is no Node.js",
)

LINE = {"rate": "5mbit", "delay": "10ms"}


@contextmanager
def served(files: dict[str, bytes]) -> Iterator[http.client.HTTPConnection]:
    """Serve `files`, and give a connection to the server."""
    with server(files, 0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        connection = http.client.HTTPConnection(HOST, running.server_port, timeout=10)
        try:
            yield connection
        finally:
            connection.close()
            running.shutdown()
            thread.join()


def get(
    connection: http.client.HTTPConnection, path: str, **headers: str
) -> tuple[int, str, bytes]:
    """Return status, media type and body."""
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.headers.get("Content-Type", ""), answer.read()


def folder_with_page(folder: Path) -> Path:
    """Write a small page."""
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<p>page")
    (folder / "assets/a.js").write_text("1")
    (folder / "sojourn.wasm").write_bytes(b"\0asm")
    return folder


def test_serves_the_files_of_the_page_with_their_types(tmp_path: Path) -> None:
    """The page, its scripts and the module have the media types that browsers require."""
    files = page_files(folder_with_page(tmp_path))
    with served(files) as connection:
        assert get(connection, "/") == (200, TYPES[".html"], b"<p>page")
        assert get(connection, "/?file") == (200, TYPES[".html"], b"<p>page")
        assert get(connection, "/assets/a.js") == (200, TYPES[".js"], b"1")
        assert get(connection, "/sojourn.wasm")[1] == "application/wasm"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        (None, None),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip;q=1.0, br;q=0", "gzip"),
        ("GZIP", "gzip"),
        ("gzip;q=0.000, BR;q=0.5", "br"),
        ("deflate, x-gzip, identity", None),
    ],
)
def test_files_are_compressed_for_clients_that_accept_it(
    tmp_path: Path, accepted: str | None, coding: str | None
) -> None:
    """Brotli comes from the file with `.br`, gzip from the server."""
    folder = folder_with_page(tmp_path)
    script = b"let queue = [];" * 200
    (folder / "assets/a.js").write_bytes(script)
    (folder / "assets/a.js.br").write_bytes(b"brotli")
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    with served(page_files(folder)) as connection:
        connection.putrequest("GET", "/assets/a.js", skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        assert answer.headers["Content-Encoding"] == coding
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["Content-Type"] == TYPES[".js"]
        assert int(answer.headers["Content-Length"]) == len(body)
        decoded = gzip.decompress(body) if coding == "gzip" else body
        assert decoded == (b"brotli" if coding == "br" else script)


def test_serves_nothing_else(tmp_path: Path) -> None:
    """Neither files next to the page nor requests for another host are answered."""
    folder = tmp_path / "page"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    with served(page_files(folder_with_page(folder))) as connection:
        for path in ("/../secret", "/%2e%2e/secret", "/assets", "/assets/", "//secret", "/secret"):
            assert get(connection, path)[0] == 404, path
        port = connection.port
        assert get(connection, "/", Host=f"evil.example:{port}")[0] == 403
        assert get(connection, "/", Host=f"localhost:{port}")[0] == 200


def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    """The message names the target and what it needs."""
    with pytest.raises(InputError, match=r"make playground.*Node"):
        page_files(tmp_path)


def test_a_port_in_use_is_refused() -> None:
    """The message names the option."""
    with server({}, 0) as running, pytest.raises(InputError, match=r"--port: \d+: .*in use"):
        server({}, running.server_port)


def test_a_scenario_is_served_without_what_the_page_cannot_use(tmp_path: Path) -> None:
    """Names work as in other commands; samples and packet logs are left out."""
    read = json.loads(scenario_file(Path("rrul")))
    assert read["name"] == "rrul"
    assert "sample" not in read["scenario"]
    assert set(read["scenario"]["links"]) == {"up", "down"}
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('duration = "1s"\n')
    with pytest.raises(InputError, match=r"wrong\.toml: .*links"):
        scenario_file(wrong)


def test_the_command_prints_the_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    """The command serves until a signal, and then exits with 0."""
    folder_with_page(tmp_path)
    code = (
        "import sys; from pathlib import Path; import sojourn.cli.playground as p; "
        f"files = p.page_files; p.page_files = lambda: files(Path({str(tmp_path)!r})); "
        "sys.argv = ['sojourn', 'playground', '--json']; "
        "from sojourn.cli.main import entry; entry()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        port = int(address.rpartition(":")[2].rstrip("/"))
        connection = http.client.HTTPConnection(HOST, port, timeout=10)
        assert get(connection, "/")[2] == b"<p>page"
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def scenarios() -> list[str]:
    """Return a scenario for each discipline, each TCP and each source."""
    specs = json.loads(_sojourn.specs())
    base = {"duration": "3s", "warmup": "1s", "sample": "50ms", "sample_flows": True}

    def scenario(qdisc: Any, *flows: dict[str, Any], **more: Any) -> str:
        named = [
            {"name": f"f{i}", "path": ["up"], "rtt": "uniform(20ms, 60ms)", **flow}
            for i, flow in enumerate(flows)
        ]
        return json.dumps(
            {**base, "links": {"up": {**LINE, "qdisc": qdisc}}, "flows": named, **more}
        )

    call = {"source": {"name": "cbr", "rate": "64kbit", "packet": "200B"}}
    all_of = [
        scenario(spec["name"], {"tcp": "cubic", "count": 2}, {"tcp": "newreno"}, call)
        for spec in specs["disciplines"]
    ]
    for spec in [*specs["tcp"], *specs["presets"]]:
        qdisc = {"name": "codel", "ecn": True, "limit": "40p"}
        all_of.append(scenario(qdisc, {"tcp": spec["name"]}, {"tcp": "cubic"}))
    settings: dict[str, dict[str, Any]] = {
        "poisson": {"load": "1mbit"},
        "trace": {"time_s": [0.1, 0.2], "size_bytes": [900, 90]},
    }
    for spec in specs["sources"]:
        source = {"name": spec["name"], **settings.get(spec["name"], {})}
        all_of.append(scenario("red", {"source": source, "count": 2}))
    quic = [{"tcp": {"name": name, "profile": "quic"}} for name in ("cubic", "bbr")]
    loss = {"up": {**LINE, "loss": 0.01, "qdisc": "fq_codel"}}
    all_of.append(scenario("pie", *quic, packet_log=True))
    all_of.append(scenario("pie", {"tcp": "bbr3"}, links=loss))
    all_of.append(scenario("tc: fq_codel limit 500 target 10ms", {"tcp": "cubic"}, call))
    return all_of


def digest(scenario: str) -> str:
    """Return what digest.mjs returns, for native code."""
    summary, columns = _sojourn.ParsedScenario(scenario).simulate()
    sha = hashlib.sha256(summary.encode())
    for name, values in columns.items():
        sha.update(f"{name} {values.dtype}".encode())
        sha.update(values.tobytes())
    return sha.hexdigest()


@needs_module
def test_results_of_the_module_are_those_of_native_code_byte_for_byte(tmp_path: Path) -> None:
    """Every discipline, every TCP and every source gives the same bytes in Node."""
    assert NODE is not None, "Node.js is missing"
    all_scenarios = scenarios()
    file = tmp_path / "scenarios.json"
    file.write_text(json.dumps(all_scenarios))
    command = [NODE, str(FOLDER / "digest-node.mjs"), str(PARTS), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    digests = json.loads(done.stdout)
    assert len(set(digests)) > len(digests) / 2
    different = [
        scenario
        for scenario, other in zip(all_scenarios, digests, strict=True)
        if digest(scenario) != other
    ]
    assert different == []


@needs_module
def test_the_module_imports_only_its_second_part() -> None:
    """It needs no clock, no random numbers and no output of its host."""
    assert NODE is not None, "Node.js is missing"
    code = (
        f"const folder = {json.dumps(str(PARTS))};"
        "for (const part of ['sojourn.wasm', 'rest.wasm']) {"
        "  const module = new WebAssembly.Module(require('fs').readFileSync(`${folder}/${part}`));"
        "  const from = new Set(WebAssembly.Module.imports(module).map((one) => one.module));"
        "  console.log(...from);"
        "}"
    )
    done = subprocess.run([NODE, "-e", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["placeholder", "primary"]
