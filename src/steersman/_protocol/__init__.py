"""The control protocol as a pure machine: bytes, verbs and time in, events and bytes out."""
