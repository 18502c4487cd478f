"""Testbed for address translation. Run it with `unshare --net --mount`.

It sets up the current namespace with two neighbours, 10.9.0.2 and 10.8.0.2, which have no route to
the addresses of links. Each has a server that answers with the address of the client. A DNS
resolver on a loopback address answers only loopback addresses, as systemd-resolved does, and a
server on 127.0.0.1 answers "secret". Then it runs a command, and prints its output and the state
of the namespace before and after as JSON. The variables `NEIGHBOUR_PID` and `SECOND_PID` of the
command have processes in the networks of the neighbours.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sojourn.live import marks

NEIGHBOUR, HERE, RESOLVER = "10.9.0.2", "10.9.0.1", "127.0.0.53"
SECOND, HERE_SECOND = "10.8.0.2", "10.8.0.1"
NEIGHBOUR6, HERE6 = "2001:db8::2", "2001:db8::1"
PORT, SECRET_PORT = 7000, 7001
CONF = Path("/proc/sys/net/ipv4/conf")

SERVER = f"""
import socket
with socket.create_server(
    ("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True
) as listening:
    while True:
        connection, (address, *_) = listening.accept()
        with connection:
            connection.sendall(address.removeprefix("::ffff:").encode())
"""
"""TCP server that answers with the address of the client."""


def answer(question: bytes) -> bytes:
    """Return a DNS answer: every name has the address of the neighbour."""
    end = question.index(b"\0", 12) + 5
    kind = int.from_bytes(question[end - 4 : end - 2], "big")
    known = kind == 1
    head = question[:2] + b"\x81\x80\0\x01" + bytes([0, known]) + bytes(4)
    record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04" + socket.inet_aton(NEIGHBOUR)
    return head + question[12:end] + (record if known else b"")


def resolve(sink: socket.socket) -> None:
    """Answer queries in datagrams from loopback addresses."""
    while True:
        question, (address, port) = sink.recvfrom(1000)
        if address.startswith("127."):
            sink.sendto(answer(question), (address, port))


def resolve_streams(listening: socket.socket) -> None:
    """Answer a query per TCP connection from a loopback address."""
    while True:
        connection, (address, _) = listening.accept()
        with connection:
            question = connection.recv(1000)[2:]
            if question and address.startswith("127."):
                data = answer(question)
                connection.sendall(len(data).to_bytes(2, "big") + data)


def tell(listening: socket.socket) -> None:
    """Send the secret to every client."""
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"secret")


def ip(*commands: str, inside: int | None = None) -> None:
    """Run commands of `ip`, in the network namespace of process `inside` if it is given."""
    enter = [] if inside is None else ["nsenter", "-t", str(inside), "-n"]
    lines = "".join(f"{command}\n" for command in commands)
    subprocess.run([*enter, "ip", "-batch", "-"], input=lines, text=True, check=True)


def shown(*command: str) -> str:
    """Return the output of a command; an empty string if it is not installed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""


def state() -> dict[str, object]:
    """Return everything that a link could leave: forwarding, rules, files in /run."""
    namespace, _ = marks.namespace()
    return {
        "forward": marks.FORWARD.read_text().strip(),
        "interfaces": {p.name: (p / "forwarding").read_text().strip() for p in CONF.iterdir()},
        "nft": shown("nft", "list", "tables"),
        "iptables": shown("iptables", "-S") + shown("iptables", "-t", "nat", "-S"),
        "ip6tables": shown("ip6tables", "-S"),
        "marks": [str(p) for p in Path("/run").glob(f"sojourn-*-{namespace}*")],
    }


def changed(before: dict[str, object]) -> bool:
    """Return True if rules or files in /run differ; forwarding is restored before these."""
    after = state()
    return any(after[what] != before[what] for what in ("nft", "iptables", "ip6tables", "marks"))


@contextmanager
def neighbour(number: int, here: str, there: str) -> Iterator[int]:
    """Create a neighbour and its server; yield a process in its network."""
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=-1, stdout=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.read(1)
        pid, ours, theirs = process.pid, f"up{number}", f"down{number}"
        ip(f"link add {ours} type veth peer name {theirs} netns {pid}")
        ip(f"addr add {here}/24 dev {ours}", f"link set {ours} up")
        ip("link set lo up", f"addr add {there}/24 dev {theirs}", inside=pid)
        ip(f"link set {theirs} up", inside=pid)
        serve = ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", SERVER]
        with subprocess.Popen(serve) as server:
            try:
                yield pid
            finally:
                server.kill()
                process.stdin.close()


def main(command: list[str]) -> None:
    """Set up the testbed, run `command`, print the results."""
    ip("link set lo up")
    with ExitStack() as stack:
        first = stack.enter_context(neighbour(0, HERE, NEIGHBOUR))
        second = stack.enter_context(neighbour(1, HERE_SECOND, SECOND))
        ip(f"route add default via {NEIGHBOUR}")
        ip(f"addr add {HERE6}/64 dev up0 nodad")
        ip(f"addr add {NEIGHBOUR6}/64 dev down0 nodad", inside=first)
        ip(f"route add default via {HERE_SECOND}", inside=second)
        with tempfile.NamedTemporaryFile("w") as resolv_conf:
            resolv_conf.write(f"search example\nnameserver {RESOLVER}\noptions timeout:5\n")
            resolv_conf.flush()
            subprocess.run(["mount", "--bind", resolv_conf.name, "/etc/resolv.conf"], check=True)
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sink.bind((RESOLVER, 53))
            streams = socket.create_server((RESOLVER, 53))
            secret = socket.create_server(("127.0.0.1", SECRET_PORT))
            for work, end in ((resolve, sink), (resolve_streams, streams), (tell, secret)):
                threading.Thread(target=work, args=(end,), daemon=True).start()
            before = state()
            pids = {"NEIGHBOUR_PID": str(first), "SECOND_PID": str(second)}
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env={**os.environ, **pids}
            )
            deadline = time.monotonic() + 20
            while changed(before) and time.monotonic() < deadline:
                time.sleep(0.05)
            after = state()
            subprocess.run(["umount", "/etc/resolv.conf"], check=False)
    outcome = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
    print(json.dumps({**outcome, "before": before, "after": after}))


if __name__ == "__main__":
    main(sys.argv[1:])
