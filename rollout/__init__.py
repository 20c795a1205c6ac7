"""The core: one episode, and many of them. It knows no environment, harness, suite or trainer by name."""
