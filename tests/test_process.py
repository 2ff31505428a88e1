from __future__ import annotations

import os
import subprocess
import sys

import pytest

from steersman._process import boot_name, has_ended, identity_of, start_time

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has start times"),
]


def test_a_process_has_one_start_and_one_identity_while_it_runs() -> None:
    mine = os.getpid()
    started = start_time(mine)

    assert started is not None
    assert identity_of(mine) == f"{mine}-{started}-{boot_name()}" == identity_of(mine)
    assert not has_ended(mine, started)
    assert has_ended(mine, "0")


def test_a_process_that_has_ended_has_no_identity_also_before_its_parent_has_noticed() -> None:
    child = subprocess.Popen((sys.executable, "-c", ""))
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    before = (start_time(child.pid) is not None, identity_of(child.pid))
    child.wait()

    assert before == (True, None)
    assert (start_time(child.pid), identity_of(child.pid)) == (None, None)
    assert has_ended(child.pid, "1")
