"""`python -m suites.office_drills`: see `--help`."""

from suites.main import main
from suites.office_drills import OfficeDrills

main(OfficeDrills())
