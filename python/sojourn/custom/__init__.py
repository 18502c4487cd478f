"""Disciplines that are written in Python."""
