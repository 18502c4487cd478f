"""Tables of results for the terminal, notebooks and LaTeX."""
