"""Benchmarks: one package each, run as `python -m suites.NAME`."""
