"""Scenarios: their tables, files, overrides, descriptions and warnings."""
