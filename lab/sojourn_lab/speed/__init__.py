"""Speed and accuracy on this machine: `make bench-live` and others, `make instructions`."""
