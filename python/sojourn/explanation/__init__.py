"""Explanations of results in sentences, by rules with numbers."""
