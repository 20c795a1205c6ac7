"""Sandbox providers: one module each, found by name."""
