"""The test suite of RFC 7928 for any discipline: cases, runs, figures, scorecard."""
