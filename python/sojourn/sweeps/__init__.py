"""Sweeps and comparisons: axes, runner, store of runs, queries."""
