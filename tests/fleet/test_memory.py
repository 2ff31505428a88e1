"""How much memory is left, from the files of the kernel."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from steersman.fleet.governor import free_memory

MEMINFO = "MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 4000 kB\n"
V2 = "/sys/fs/cgroup/app.slice/fleet.service"
V1 = "/sys/fs/cgroup/memory/docker/abc"

MACHINES: Mapping[str, tuple[dict[str, str], int | None]] = {
    "no files": ({}, None),
    "no groups": ({"/proc/meminfo": MEMINFO}, 4_096_000),
    "version 2": (
        {
            "/proc/meminfo": MEMINFO,
            "/proc/self/cgroup": "0::/app.slice/fleet.service\n",
            f"{V2}/memory.max": "3000000\n",
            f"{V2}/memory.current": "2000000\n",
            f"{V2}/memory.stat": "anon 1\ninactive_file 500000\n",
        },
        1_500_000,
    ),
    "version 2, the group above has less": (
        {
            "/proc/meminfo": MEMINFO,
            "/proc/self/cgroup": "0::/app.slice/fleet.service\n",
            f"{V2}/memory.max": "max\n",
            f"{V2}/memory.current": "2000000\n",
            "/sys/fs/cgroup/app.slice/memory.max": "2500000",
            "/sys/fs/cgroup/app.slice/memory.current": "2600000",
        },
        0,
    ),
    "version 1": (
        {
            "/proc/meminfo": MEMINFO,
            "/proc/self/cgroup": "12:cpu:/x\n7:hugetlb,memory:/docker/abc\n0::/\n",
            f"{V1}/memory.limit_in_bytes": "3000000",
            f"{V1}/memory.usage_in_bytes": "1000000",
            f"{V1}/memory.stat": "inactive_file 1\ntotal_inactive_file 7\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000",
        },
        2_000_007,
    ),
    "nonsense": (
        {"/proc/meminfo": "MemAvailable:\n", "/proc/self/cgroup": "x\n0::/\n:::\n"},
        None,
    ),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_least_of_the_machine_and_its_groups_counts(machine: str) -> None:
    files, expected = MACHINES[machine]

    assert free_memory(files.get) == expected


def test_this_machine_can_be_read() -> None:
    found = free_memory()

    assert found is None or found >= 0
