"""Paper reproduction: runs, claims and their verdicts, reports."""
