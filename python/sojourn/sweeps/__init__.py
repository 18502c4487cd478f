"""Sweeps and comparisons: axes, runner, result store, queries."""
