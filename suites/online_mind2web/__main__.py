"""`python -m suites.online_mind2web`: see `--help`."""

from suites.browser import run
from suites.online_mind2web import OnlineMind2Web
from suites.online_mind2web.export import write

run(OnlineMind2Web(), write)
