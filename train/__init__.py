"""From recorded episodes to what a trainer consumes."""
