"""Worlds to act in: one module or package per environment, found by its name."""
