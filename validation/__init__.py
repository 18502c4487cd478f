"""Our results beside those of ns-2.35: `make validate` plays its scenarios and writes the page."""
