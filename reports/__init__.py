"""Reports over recorded runs: tables, charts and an episode viewer. Reads episode stores only."""
