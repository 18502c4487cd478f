"""Arrivals of the day through a Linux kernel and through ours: `make validate-linux-fresh`."""
