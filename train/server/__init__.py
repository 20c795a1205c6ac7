"""The rollout server: groups of episodes as samples over HTTP, for any trainer."""
