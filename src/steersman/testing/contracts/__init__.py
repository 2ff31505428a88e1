"""Contract tests for adapters: one suite for each port, to run against an implementation of it."""
