"""Papers, one module each; see `sojourn.paper` for what a module holds."""
