"""`python -m suites.webvoyager`: see `--help`."""

from suites.browser import run
from suites.webvoyager import WebVoyager
from suites.webvoyager.export import write

run(WebVoyager(), write)
