"""The parity report: catalogue, `ours` and `evidence` of tests → `rows` → `page`."""
