"""The kernel's own tests of tc (tc-testing, "tdc") through our reader of tc."""
