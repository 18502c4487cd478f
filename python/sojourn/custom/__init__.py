"""Disciplines, congestion controls and traffic sources that are written in Python."""
