"""The session functions of the official package, over `steersman.sessions` and `transcripts`."""
