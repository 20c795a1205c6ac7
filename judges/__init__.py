"""Protocols by which an LLM grades evidence: one module each."""
