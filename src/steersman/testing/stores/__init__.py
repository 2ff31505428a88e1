"""A checker for session stores: `report = await check(make_store)`, then `report.is_good`.

It holds the rules of the official conformance suite, and what a store meets in practice: the same
batch again, several writers, odd strings, a caller that gives up. Each rule has a place of its own.
"""

from steersman.testing.stores.checking import Finding, Report, check, rule_names

__all__ = ["Finding", "Report", "check", "rule_names"]
