"""Reproduced papers, one package each; `sojourn.reproduction.paper` says what each holds."""
