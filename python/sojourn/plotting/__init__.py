"""Figures of a run, a comparison and a sweep."""
