"""The local trainer: GRPO and SFT for models that fit into this process."""
