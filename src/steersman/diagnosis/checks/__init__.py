"""The checks of `doctor`, one in each file."""
