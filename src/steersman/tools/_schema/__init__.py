"""Python types and JSON Schemas → the schema of a tool and the reader of its arguments."""
