"""The official Python SDK, used through its public names only."""

from __future__ import annotations

import claude_agent_sdk

from benchmarks.contestants.official_names import run

if __name__ == "__main__":
    run(claude_agent_sdk)
