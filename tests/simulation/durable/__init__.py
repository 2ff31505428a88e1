"""Hosts, people and crashes over the real tables, sessions and inboxes, in virtual time."""
