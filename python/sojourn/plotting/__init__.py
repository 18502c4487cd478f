"""Figures of runs, comparisons and sweeps."""
