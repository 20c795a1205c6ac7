"""`python -m suites.claweval`: see `--help`."""

from suites.claweval import ClawEval
from suites.main import main

main(ClawEval())
