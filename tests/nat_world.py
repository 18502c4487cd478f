"""Testbed for address translation. Run it with `unshare --net --mount`.

It sets up the current namespace with one neighbour, 10.9.0.2, which has no route back to the
addresses of links. It starts a DNS resolver on a loopback address that answers only loopback
addresses, as systemd-resolved does. Then it runs a command, and prints its output and the state of
the namespace before and after as JSON.
"""

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

NEIGHBOUR, HERE, RESOLVER = "10.9.0.2", "10.9.0.1", "127.0.0.53"
NEIGHBOUR6, HERE6 = "2001:db8::2", "2001:db8::1"
PORT = 7000
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")

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
    found = kind == 1
    head = question[:2] + b"\x81\x80\0\x01" + bytes([0, found]) + bytes(4)
    record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04" + socket.inet_aton(NEIGHBOUR)
    return head + question[12:end] + (record if found else b"")


def resolve(sink: socket.socket) -> None:
    """Answer queries from loopback addresses."""
    while True:
        question, (address, port) = sink.recvfrom(1000)
        if address.startswith("127."):
            sink.sendto(answer(question), (address, port))


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
    namespace = Path("/proc/self/ns/net").stat().st_ino
    return {
        "forward": FORWARD.read_text().strip(),
        "nft": shown("nft", "list", "tables"),
        "iptables": shown("iptables", "-S") + shown("iptables", "-t", "nat", "-S"),
        "marks": [str(p) for p in Path("/run").glob(f"sojourn-*-{namespace}")],
    }


def main(command: list[str]) -> None:
    """Set up the testbed, run `command`, print the results."""
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=-1, stdout=-1) as neighbour:
        assert neighbour.stdin is not None
        assert neighbour.stdout is not None
        neighbour.stdin.write(b"\n")
        neighbour.stdin.flush()
        neighbour.stdout.read(1)
        pid = neighbour.pid
        ip("link set lo up", f"link add up0 type veth peer name up1 netns {pid}")
        ip(f"addr add {HERE}/24 dev up0", "link set up0 up")
        ip("link set lo up", f"addr add {NEIGHBOUR}/24 dev up1", "link set up1 up", inside=pid)
        ip(f"route add default via {NEIGHBOUR}")
        ip(f"addr add {HERE6}/64 dev up0 nodad")
        ip(f"addr add {NEIGHBOUR6}/64 dev up1 nodad", inside=pid)
        with tempfile.NamedTemporaryFile("w") as resolv_conf:
            resolv_conf.write(f"search example\nnameserver {RESOLVER}\noptions timeout:5\n")
            resolv_conf.flush()
            subprocess.run(["mount", "--bind", resolv_conf.name, "/etc/resolv.conf"], check=True)
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sink.bind((RESOLVER, 53))
            threading.Thread(target=resolve, args=(sink,), daemon=True).start()
            with subprocess.Popen(
                ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", SERVER]
            ) as server:
                before = state()
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                deadline = time.monotonic() + 20
                while (after := state()) != before and time.monotonic() < deadline:
                    time.sleep(0.05)
                server.kill()
            subprocess.run(["umount", "/etc/resolv.conf"], check=False)
        neighbour.stdin.close()
    told = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
    print(json.dumps({**told, "before": before, "after": after}))


if __name__ == "__main__":
    main(sys.argv[1:])
