"""Tables of runs and comparisons for the terminal, notebooks and LaTeX."""
