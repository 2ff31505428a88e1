"""Answers to the control requests of the CLI."""
