"""Comparison with recordings of the queue disciplines of Linux, packet by packet."""
