from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from steersman.transports import kernel
from steersman.transports.kernel import Row, descendants, rows_by_children, rows_by_ps, rows_of_ps

INIT: Row = (1, 0, 1, "S")
PR_SET_NOTHING = 99999


def pids(rows: list[Row]) -> list[int]:
    return sorted(row[0] for row in rows)


def test_descendants_are_found_at_any_depth_and_in_any_order() -> None:
    rows: list[Row] = [(30, 20, 30, "S"), (20, 10, 20, "S"), (10, 1, 10, "S"), (99, 1, 99, "S")]

    assert pids(descendants([INIT, *rows], 10)) == [20, 30]


def test_an_orphan_is_known_by_its_process_group() -> None:
    rows: list[Row] = [(10, 1, 10, "S"), (20, 10, 20, "S"), (21, 1, 20, "S"), (22, 21, 22, "S")]

    assert pids(descendants([INIT, *rows], 10)) == [20, 21, 22]


def test_the_group_of_a_cli_that_has_exited_is_still_its_own() -> None:
    rows: list[Row] = [(10, 1, 10, "S"), (21, 1, 20, "S")]

    assert pids(descendants([INIT, *rows], 10, {20})) == [21]


def test_members_of_the_group_of_the_root_are_no_descendants() -> None:
    rows: list[Row] = [(10, 1, 10, "S"), (11, 1, 10, "S"), (20, 10, 10, "S"), (5, 1, 0, "S")]

    assert pids(descendants([INIT, *rows], 10)) == [20]


def test_a_loop_in_the_table_does_not_hang() -> None:
    rows: list[Row] = [(10, 20, 10, "S"), (20, 10, 20, "S")]

    assert pids(descendants(rows, 10)) == [20]


def test_the_output_of_ps_becomes_rows() -> None:
    text = "    1     0     1 Ss  \n  345   1   345 S+\n junk\n  346   345   345 T\n"

    assert rows_of_ps(text) == [(1, 0, 1, "S"), (345, 1, 345, "S"), (346, 345, 345, "T")]


def test_ps_and_proc_agree_about_a_tree() -> None:
    script = "sleep 60 & sleep 60 & echo; cat"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        by_ps = pids(descendants(rows_by_ps(), shell.pid))
        by_children = rows_by_children(shell.pid)
        by_proc = kernel.rows_by_proc()
        left = kernel.kill_below(shell.pid)
        shell.kill()

    assert len(by_ps) >= 2
    if by_children is not None:
        assert set(by_ps) <= set(pids(descendants(by_children, shell.pid)))
    if by_proc is not None:
        assert set(by_ps) <= {row[0] for row in by_proc}
    assert set(by_ps) <= set(pids(left))


def test_a_program_may_have_parentheses_in_its_name(tmp_path: Path) -> None:
    program = tmp_path / "a) (b 1 2"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        row = kernel.row_of(process.pid)
        process.kill()

    if Path("/proc/self/stat").exists():
        assert row is not None
        assert row[:2] == (process.pid, os.getpid())


@pytest.mark.parametrize("call", [kernel.call_by_dlsym, kernel.call_by_ctypes])
def test_both_ways_call_the_same_c_function(
    call: Callable[[str, tuple[int, ...]], int],
) -> None:
    assert call("getpid", ()) == os.getpid()
    assert call("prctl", (PR_SET_NOTHING, 0, 0, 0, 0)) == -1


@pytest.mark.parametrize("call", [kernel.call_by_dlsym, kernel.call_by_ctypes])
def test_a_missing_c_function_raises_an_expected_error(
    call: Callable[[str, tuple[int, ...]], int],
) -> None:
    with pytest.raises((OSError, AttributeError)):
        call("no_such_function_anywhere", ())


@pytest.mark.skipif(sys.platform != "linux", reason="there is no prctl elsewhere")
def test_prctl_returns_whether_the_kernel_accepted_the_call() -> None:
    program = """
        from steersman.transports.guard import PR_SET_CHILD_SUBREAPER, prctl
        print(prctl(PR_SET_CHILD_SUBREAPER, 1), prctl(99999, 0))
    """

    output = subprocess.check_output([sys.executable, "-c", dedent(program)], timeout=60)

    assert output.split() == [b"True", b"False"]
