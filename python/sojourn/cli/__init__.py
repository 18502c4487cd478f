"""The `sojourn` command: one module per command, imported when it runs."""
