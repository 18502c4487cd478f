"""The result of a run: its tables, files and statistics."""
