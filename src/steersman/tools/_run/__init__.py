"""Where calls of tools run: threads, concurrency limits, heartbeats, stall detection."""
