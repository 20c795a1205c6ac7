"""Settings that all tests share."""

from hypothesis import settings

# How long an example takes says something of the machine, not of the code.
settings.register_profile("anyharness", deadline=None)
settings.load_profile("anyharness")
