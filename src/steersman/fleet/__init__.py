"""Many conversations on a few CLIs."""
