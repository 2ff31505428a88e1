"""The official shapes, by topic; `steersman.compat.types` has all of them."""
