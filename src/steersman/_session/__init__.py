"""The machine, driven over a channel."""
