"""BBRv3 and CUBIC of a kernel with BBRv3, and ours: random scenarios, random loss, buffer size."""
