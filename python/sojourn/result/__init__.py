"""Result of a run: tables, files, statistics."""
