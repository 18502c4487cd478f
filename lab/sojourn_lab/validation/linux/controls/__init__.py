"""Congestion controls of Linux that are modules, compared with ours."""
