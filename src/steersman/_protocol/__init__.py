"""The conversation as a machine. Pure: bytes, verbs and time in, events and bytes out."""
