"""Agent programs: one module per harness, found by its name."""
