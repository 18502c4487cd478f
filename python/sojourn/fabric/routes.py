"""Shortest paths between hosts over links that are called by their ends, like `h3-s20`.

Switches choose among equal paths by a hash of sender, receiver and port (ECMP). A host does not
forward.
"""

from collections import deque
from collections.abc import Iterable

from sojourn._sojourn import InputError
from sojourn._util.inputs import near

MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """Return a hash of 64 bits: the finaliser of SplitMix64 (Steele et al., OOPSLA 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def is_host(name: str) -> bool:
    """Return True if a node is a host: `h` and a number."""
    return name[:1] == "h" and name[1:].isdecimal()


class Network:
    """Nodes and links of a scenario.

    Parameters
    ----------
    links : iterable of str
        Names of links. Those that are not two names with "-" between them are left out.
    seed : int
        Seed of the hashes.
    shared : bool
        True if all switches have the same hash function. Then a switch chooses as the one before
        it did, and part of the network idles (polarisation).
    """

    def __init__(self, links: Iterable[str], seed: int, *, shared: bool = False) -> None:
        self.next: dict[str, list[str]] = {}
        self.before: dict[str, list[str]] = {}
        for link in links:
            a, dash, b = link.partition("-")
            if dash and "-" not in b:
                self.next.setdefault(a, []).append(b)
                self.next.setdefault(b, [])
                self.before.setdefault(b, []).append(a)
        self.hosts = sorted(filter(is_host, self.next), key=lambda name: int(name[1:]))
        places = {name: 0 if shared else i for i, name in enumerate(self.next)}
        self._seeds = {name: mix(seed * 0x1_0000_0001 + i) for name, i in places.items()}
        self._hops: dict[str, dict[str, list[str]]] = {}

    def hops(self, receiver: str) -> dict[str, list[str]]:
        """Return the next nodes of each node on its shortest paths to `receiver`."""
        known = self._hops.get(receiver)
        if known is not None:
            return known
        distance = {receiver: 0}
        waiting = deque([receiver])
        while waiting:
            node = waiting.popleft()
            if node != receiver and is_host(node):
                continue
            for before in self.before.get(node, ()):
                if before not in distance:
                    distance[before] = distance[node] + 1
                    waiting.append(before)
        reach = {
            node: [
                after
                for after in self.next[node]
                if distance.get(after, -2) == d - 1 and (after == receiver or not is_host(after))
            ]
            for node, d in distance.items()
        }
        self._hops[receiver] = reach
        return reach

    def shares(self, sender: str, receiver: str) -> dict[str, float]:
        """Return the share of the flows from `sender` to `receiver` that each link carries.

        Every node divides them equally among its links to the next nodes.

        Raises InputError if a host does not exist, or no path leads there.
        """
        hops = self._hops_between(sender, receiver)
        shares: dict[str, float] = {}
        nodes = {sender: 1.0}
        while receiver not in nodes:
            reached: dict[str, float] = {}
            for node, share in nodes.items():
                ways = hops.get(node, ())
                for after in ways:
                    shares[f"{node}-{after}"] = share / len(ways)
                    reached[after] = reached.get(after, 0.0) + share / len(ways)
            if not reached:
                raise InputError(f"no links lead from {sender} to {receiver}")
            nodes = reached
        return shares

    def first_links(self, sender: str, receiver: str) -> list[str]:
        """Return the links from `sender` with which paths to `receiver` begin.

        Raises InputError if a host does not exist, or no path leads there.
        """
        ways = self._hops_between(sender, receiver).get(sender)
        if not ways:
            raise InputError(f"no links lead from {sender} to {receiver}")
        return [f"{sender}-{after}" for after in ways]

    def _hops_between(self, sender: str, receiver: str) -> dict[str, list[str]]:
        for host in (sender, receiver):
            if host not in self.next:
                text = f"{host} is no node of the links{near(host, self.hosts)}"
                raise InputError(f"{text}; links are called by their ends, like {host}-s1")
        return self.hops(receiver)

    def path(self, sender: str, receiver: str, port: int) -> tuple[str, ...]:
        """Return the links from `sender` to `receiver` that a flow with this port takes.

        Raises InputError if a host does not exist, or no path leads there.
        """
        hops = self._hops_between(sender, receiver)
        key = mix(mix(int(sender[1:]) << 32 | int(receiver[1:])) ^ port)
        node, path = sender, []
        while node != receiver:
            ways = hops.get(node, ())
            if not ways:
                raise InputError(f"no links lead from {sender} to {receiver}")
            after = ways[0]
            if len(ways) > 1:
                after = ways[mix(self._seeds[node] ^ key) % len(ways)]
            path.append(f"{node}-{after}")
            node = after
        return tuple(path)
