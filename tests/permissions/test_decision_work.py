"""No call takes much work to decide about, however it is made and however many rules there are.

Work is counted, not timed: in calls of functions, which Python reports. `make soak` also prints the
time of the slowest decisions, in milliseconds of CPU.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from steersman.permissions import Policy, deny, shell_line, shell_reader
from steersman.permissions.rules import ToolCall
from steersman.permissions.shell import LONGEST, stops_command
from tests.permissions.hostile_calls import MEGABYTE, calls, event_of, guards, policies

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
MOST_CALLS = 150_000
"""Calls of functions, of Python's own too, for one decision; each takes 0.1 to 0.2 us."""
MOST_MILLISECONDS = 1000.0
"""CPU time of one decision, on any machine; the number of calls is the sharper limit."""
WORST = frozenset(
    {"Bash: braces", "Bash: commands", "Bash: paths", "Bash: directories", "Bash: substitutions"}
) | {"Read: folders", "Read: brackets", "WebFetch: escapes", "MCP: commands", "MultiEdit"}
"""The calls that once took longest, for the suite; `make soak` tries all."""
LIMITS = (4096, LONGEST, 2 * LONGEST, MEGABYTE)


def forget() -> None:
    """Forget the lines that were read."""
    shell_reader.read.cache_clear()
    shell_line.line_of.cache_clear()


def counted(work: Callable[[], object]) -> int:
    """Return how many functions are called by a piece of work."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("size", LIMITS if IS_SOAK else LIMITS[1:2])
@pytest.mark.parametrize("count", [1, 20, 100] if IS_SOAK else [100])
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_no_decision_calls_many_functions(count: int, size: int) -> None:
    everything = guards(count)
    deciding = everything if IS_SOAK else dict.fromkeys(("policy of deny", "block_paths"))
    tried = [each for each in calls(size) if IS_SOAK or each[0] in WORST]
    found: dict[str, int] = {}

    for name, tool, given in tried:
        event = event_of(tool, given)
        for guard in deciding:
            forget()
            found[f"{guard} <- {name}"] = counted(partial(everything[guard], event))

    assert {name: count for name, count in found.items() if count > MOST_CALLS} == {}
    assert len(tried) >= len(WORST)


@pytest.mark.skipif(not IS_SOAK, reason="a table of times, for make soak")
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_table_of_the_slowest_decisions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        (milliseconds(guard, event_of(tool, given)), count, size, name, what)
        for count in (1, 20, 100)
        for name, guard in guards(count).items()
        for size in LIMITS
        for what, tool, given in calls(size)
    ]

    slowest = max(took for took, *_ in rows)
    with capsys.disabled():
        sys.stdout.write("\n ms CPU  rules     size  guard                   call\n")
        for took, count, size, name, what in sorted(rows, reverse=True)[:20]:
            sys.stdout.write(f"{took:7.1f} {count:6} {size:8}  {name:22}  {what}\n")

    assert slowest < MOST_MILLISECONDS


def milliseconds(guard: Callable[[Any], object], event: object) -> float:
    forget()
    begun = time.process_time()
    guard(event)
    return 1000 * (time.process_time() - begun)


def test_a_line_is_read_once_for_all_rules() -> None:
    forget()
    call = ToolCall("Bash", {"command": "echo a; bash -c 'ls b' | tail -1"})

    for policy in policies(100).values():
        policy.decide(call)

    assert shell_reader.read.cache_info().misses == 1
    assert shell_line.line_of.cache_info().misses == 1


def test_a_decision_that_runs_out_of_steps_is_no_approval() -> None:
    line = "cat " + " ".join(f"/aa/xyz{number}" for number in range(1400))
    rules = [f"Read(**/aa/?{number})" for number in range(100)]
    call = ToolCall("Bash", {"command": line})

    found = Policy(deny(*rules)).decide(call)

    assert found.verdict == "ask"
    assert call.effort.left < 0
    short = ToolCall("Bash", {"command": line[:100]})
    assert Policy(deny(*rules)).decide(short).verdict == "cli"
    # The next decision has all its steps.
    assert Policy(deny("Bash(rm *)")).decide(call).verdict == "cli"


def test_braces_in_a_line_are_read_in_one_pass() -> None:
    forget()

    calls_made = counted(lambda: stops_command("rm *", "echo " + "{" * (LONGEST - 5)))

    # The time of one search was quadratic in the length of the word.
    assert calls_made < 1000
