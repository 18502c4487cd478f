"""The `sojourn` command: one module per command, imported when the command runs."""
