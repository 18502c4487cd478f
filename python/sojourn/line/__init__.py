"""Measurements of real lines: files of tools, the line behind them, and before against after."""
