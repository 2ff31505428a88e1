"""Which release of the CLI keeps which promise. Written by `make conform-range`; do not edit."""

FLOOR = "2.1.191"
NEWEST_TESTED = "2.1.328"
TESTED: tuple[str, ...] = (
    "2.1.191",
    "2.1.203",
    "2.1.205",
    "2.1.206",
    "2.1.219",
    "2.1.233",
    "2.1.259",
    "2.1.284",
    "2.1.285",
    "2.1.286",
    "2.1.302",
    "2.1.325",
    "2.1.326",
    "2.1.328",
)
HOLDS_SINCE: dict[str, str] = {
    "continues_turns": "2.1.286",
    "soft_pause": "2.1.286",
    "deferral": "2.1.286",
    "background_tasks": "2.1.203",
    "lifecycle": "2.1.259",
    "interrupt_receipts": "2.1.219",
    "asks_by_default": "2.1.191",
}
"""The first release from which a promise holds."""
UNSAFE: tuple[tuple[str, str, str], ...] = ()
"""First and last release of a range whose guards are broken, and what is broken."""
