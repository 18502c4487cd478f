"""Links on real packets: namespaces, the packet pump, traffic, statistics."""
