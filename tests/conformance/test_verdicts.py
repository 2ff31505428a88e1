"""What an observation means."""

from __future__ import annotations

from typing import Any

import pytest

from steersman_conformance.checks import Check, Kind
from steersman_conformance.verdicts import Baseline, Verdict, is_good, judge

SEEN, LACKING, OTHER = "seen", None, "other"


def check(kind: Kind) -> Check[Any]:
    return Check("name", "It is so.", kind, "5", SEEN, lambda seen: seen, absent=LACKING)


def verdict(kind: Kind, observed: Any, *recorded: Any, version: str = "2.1.1") -> Verdict:
    baseline = Baseline("2.1.1", {"name": recorded[0]}) if recorded else None
    return judge(check(kind), observed, baseline, version=version).verdict


@pytest.mark.parametrize("kind", [Kind.MUST, Kind.FEATURE])
def test_what_is_seen_as_expected_holds(kind: Kind) -> None:
    assert verdict(kind, SEEN) is verdict(kind, SEEN, SEEN) is Verdict.HOLDS


def test_what_we_depend_on_is_broken_even_if_it_was_recorded_so() -> None:
    assert verdict(Kind.MUST, OTHER) is verdict(Kind.MUST, OTHER, OTHER) is Verdict.BROKEN


def test_a_feature_that_was_never_there_is_handled() -> None:
    assert verdict(Kind.FEATURE, LACKING) is Verdict.ABSENT
    assert verdict(Kind.FEATURE, LACKING, LACKING) is Verdict.ABSENT


def test_a_feature_that_was_there_and_is_gone_has_changed() -> None:
    assert verdict(Kind.FEATURE, LACKING, SEEN) is Verdict.CHANGED
    assert verdict(Kind.FEATURE, LACKING, SEEN, version="2.1.2") is Verdict.CHANGED


def test_a_feature_that_comes_with_a_new_version_is_welcome() -> None:
    assert verdict(Kind.FEATURE, SEEN, LACKING, version="2.1.2") is Verdict.HOLDS
    assert verdict(Kind.FEATURE, SEEN, LACKING) is Verdict.CHANGED


def test_a_feature_that_is_half_there_is_broken_unless_this_version_is_known_for_it() -> None:
    assert verdict(Kind.FEATURE, OTHER, SEEN) is Verdict.BROKEN
    assert verdict(Kind.FEATURE, OTHER, OTHER, version="2.1.2") is Verdict.BROKEN
    assert verdict(Kind.FEATURE, OTHER, OTHER) is Verdict.ABSENT


def test_a_fault_stands_until_it_is_fixed() -> None:
    assert verdict(Kind.CANARY, SEEN, SEEN) is Verdict.STANDS
    assert verdict(Kind.CANARY, OTHER, SEEN, version="2.1.2") is Verdict.FIXED
    assert verdict(Kind.CANARY, OTHER) is Verdict.FIXED


def test_a_fault_that_a_version_is_known_not_to_have_is_no_news() -> None:
    assert verdict(Kind.CANARY, OTHER, OTHER) is Verdict.ABSENT
    assert verdict(Kind.CANARY, OTHER, OTHER, version="2.1.2") is Verdict.FIXED


def test_only_what_holds_stands_or_is_handled_is_good() -> None:
    def findings(observed: Any) -> list[Any]:
        return [judge(check(kind), observed, None, version="2.1.1") for kind in Kind]

    assert is_good(findings(SEEN))
    assert not is_good(findings(OTHER))
