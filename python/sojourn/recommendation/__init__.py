"""Recommend a discipline and its parameters for a line: traffic, objectives, search, answer."""
