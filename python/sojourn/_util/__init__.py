"""Helpers for all other folders: files, units, messages, progress bars."""
