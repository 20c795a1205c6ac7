"""The one address that a sandbox can reach: the model proxy and the task's tools."""
