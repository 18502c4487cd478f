"""Mutation testing of the algorithms and of Python modules: `make mutants`."""
