"""Comparison of impaired links with netem of a Linux kernel in user mode."""
