"""One database under every SQL store: two drivers, one schema, one class per table."""
