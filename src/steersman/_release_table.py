"""Which release of the CLI keeps which promise. Written by `make conform-range`; do not edit."""

FLOOR = "2.1.191"
NEWEST_TESTED = "2.1.325"
TESTED: tuple[str, ...] = ("2.1.191", "2.1.260", "2.1.290", "2.1.300", "2.1.325")
HOLDS_SINCE: dict[str, str] = {
    "continues_turns": "2.1.285",
    "soft_pause": "2.1.285",
    "deferral": "2.1.285",
    "background_tasks": "2.1.191",
    "lifecycle": "2.1.260",
    "interrupt_receipts": "2.1.260",
    "asks_by_default": "2.1.191",
}
"""The first release from which a promise holds."""
UNSAFE: tuple[tuple[str, str, str], ...] = ()
"""First and last release of a range whose guards are broken, and what is broken."""
