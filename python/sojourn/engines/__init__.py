"""Runs of the simulator: scenarios, and recorded arrivals through one link."""
