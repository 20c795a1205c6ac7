"""verl (verl-project/verl) as a trainer: AnyHarness as its plug-in, and the way to start it."""
