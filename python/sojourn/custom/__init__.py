"""Disciplines and congestion controls that are written in Python."""
