"""Simulator front ends: run scenarios, and replay recorded arrivals through one link."""
