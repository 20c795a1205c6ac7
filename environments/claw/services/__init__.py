"""The mock services, one module each, found by name."""
