"""Random scenarios, simulated and run with the kernel's TCP, and compared."""
