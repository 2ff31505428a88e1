"""The `steersman` command."""
