"""Scenarios: models, files, overrides, descriptions, warnings."""
