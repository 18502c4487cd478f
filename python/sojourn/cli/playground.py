"""The command `sojourn playground`: serves the folder `page` on the loopback address."""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn._sojourn import InputError
from sojourn.cli import suggest
from sojourn.cli.options import Json

PAGE = Path(__file__).parent / "page"
"""The built page; `make playground` writes it, and wheels contain it."""

HOST = "127.0.0.1"

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
}
"""Media types. The module is refused by browsers with another one, as some systems have it."""


def playground(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="scenario to open: a file (.toml or .json) or a name, like rrul",
            show_default=False,
            autocompletion=suggest.scenarios,
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="port; 0 for a free one", min=0, max=65535)] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="open it in the browser")] = False,
    as_json: Json = False,
) -> None:
    """Serve the playground: queues in the browser, live, with every parameter as a control.

    The page runs the simulator itself and loads nothing from other hosts. It is served on the
    loopback address until Ctrl-C.
    """
    files = page_files()
    if file is not None:
        files["/scenario.json"] = scenario_file(file)
    serve(files, port, open_browser=open_browser, as_json=as_json)


def serve(
    files: Mapping[str, bytes], port: int = 0, *, open_browser: bool, as_json: bool = False
) -> None:
    """Serve `files` until Ctrl-C, and print the address; a scenario among them is opened."""
    with server(files, port) as running:
        query = "?file" * ("/scenario.json" in files)
        address = f"http://{HOST}:{running.server_port}/{query}"
        print(json.dumps({"address": address}) if as_json else address, flush=True)
        if open_browser:
            import webbrowser

            webbrowser.open(address)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            return


def page_files(folder: Path = PAGE) -> dict[str, bytes]:
    """Return the files of the page by their path in an address.

    Raises InputError if the page was not built.
    """
    if not (folder / "index.html").is_file():
        raise InputError(
            "playground: the page is not built: run `make playground` in a clone of the repository "
            "(it needs Node.js 20 and rustup)"
        )
    files = (path for path in folder.rglob("*") if path.is_file())
    pages = {f"/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}
    return {**pages, "/": pages["/index.html"]}


def scenario_file(file: Path) -> bytes:
    """Return a scenario as the page reads it, without keys that the page cannot use.

    Raises InputError if it is not valid, or the page cannot run it.
    """
    from sojourn.scenario.draft import Draft

    draft = Draft.read(file)
    draft.parse()
    scenario = json.loads(draft.to_json())
    shown = {key: value for key, value in scenario.items() if key not in ("sample", "packet_log")}
    return json.dumps({"name": file.name, "scenario": shown}).encode()


def accepts(header: str, coding: str) -> bool:
    """Return True if an Accept-Encoding header names `coding` with a weight above zero."""
    for item in header.lower().split(","):
        name, _, weight = item.replace(" ", "").partition(";q=")
        if name == coding:
            return weight.strip("0.") != "" or weight == ""
    return False


def server(files: Mapping[str, bytes], port: int) -> ThreadingHTTPServer:
    """Return a server of `files`, by path, on the loopback address.

    A file is sent compressed to a client that accepts it: with Brotli if `files` has it with the
    suffix `.br`, as a built page does, else with gzip.

    Raises InputError if the port is in use or not allowed.
    """

    @cache
    def gzipped(path: str) -> bytes:
        return gzip.compress(files[path], mtime=0)

    class Handler(BaseHTTPRequestHandler):
        """Answers requests of this machine for one of the files."""

        def do_GET(self) -> None:
            """Send a file."""
            self.answer(body=True)

        def do_HEAD(self) -> None:
            """Send the headers of a file."""
            self.answer(body=False)

        def answer(self, *, body: bool) -> None:
            """Send the headers of a file, and the file if `body`."""
            # Another name for this address belongs to a page of another host (DNS rebinding).
            name = (self.headers.get("Host") or "").rpartition(":")[0]
            if name not in (HOST, "localhost"):
                return self.send_error(HTTPStatus.FORBIDDEN)
            path = self.path.partition("?")[0]
            content = files.get(path)
            if content is None:
                return self.send_error(HTTPStatus.NOT_FOUND)
            header = self.headers.get("Accept-Encoding") or ""
            coding = ""
            if accepts(header, "br") and f"{path}.br" in files:
                coding, content = "br", files[f"{path}.br"]
            elif accepts(header, "gzip") and len(content) > 1000:
                coding, content = "gzip", gzipped(path)
            self.send_response(HTTPStatus.OK)
            kind = TYPES.get(Path(path).suffix or ".html", "application/octet-stream")
            self.send_header("Content-Type", kind)
            if coding:
                self.send_header("Content-Encoding", coding)
            self.send_header("Vary", "Accept-Encoding")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-cache")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if body:
                self.wfile.write(content)
            return None

        def log_message(self, format: str, *values: Any) -> None:  # noqa: A002 - as http.server has it
            """Log nothing: the terminal shows the address only."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"--port: {port}: {reason}; 0 selects a free one") from None
