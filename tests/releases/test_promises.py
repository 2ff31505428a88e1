"""What the page says of the stock CLI and of the floor is so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import find_stock_cli
from steersman_conformance.runner import version_of
from tests.live.test_harness import stock_cli
from tests.releases.__main__ import kept
from tests.releases.promises import PROMISES, Promise, Verdict, probe

pytestmark = [pytest.mark.live, pytest.mark.process, pytest.mark.ci_only]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
@pytest.mark.parametrize("find", [find_stock_cli, find_older_cli])
async def test_a_release_does_with_a_promise_what_the_page_says(
    find: Callable[[], Path], promise: Promise
) -> None:
    program = stock_cli(find)
    row = kept().rows.get(await version_of(str(program)))

    verdict = await probe(promise, program)

    # A stock CLI that is newer than the page must keep every promise.
    assert verdict == (Verdict.YES if row is None else row.promises[promise.name])
