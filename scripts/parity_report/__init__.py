"""The parity report: `catalogue` + `ours` + `evidence` → `rows` → `page`."""
