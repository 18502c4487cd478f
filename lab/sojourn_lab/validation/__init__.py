"""Comparison with ns-2.35: `make validate` runs its scenarios and writes reports/validation.md."""
