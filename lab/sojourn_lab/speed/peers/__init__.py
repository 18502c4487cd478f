"""Other simulators on the same work as sojourn (`make bench-peers`)."""
