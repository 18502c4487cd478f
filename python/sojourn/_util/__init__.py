"""Helpers that every other folder may use: files, units, messages, progress."""
