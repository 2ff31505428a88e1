"""From options to a session that can be started: its plan, its place, and whoever serves it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steersman._session.session import Session
from steersman._session.setup import Resumption, SessionSetup
from steersman._session.uuids import new_uuid
from steersman._wire.launch import Plan, plan
from steersman.adapters import (
    FUNCTIONS,
    adopted,
    flight_recorder,
    plugins_checked,
    policed,
    program_of,
    recorder,
    servers_of,
    transcript_reader,
)
from steersman.options.fields import Options
from steersman.ports import Clock, ToolServer, Transport
from steersman.transports.subprocess import SubprocessTransport

__all__ = ["session"]


def session(
    options: Options,
    transport: Transport | None,
    clock: Clock,
    branch: Callable[[str, Mapping[str, Any]], Session],
) -> Session:
    """A session with these options; without a transport it runs in a process of its own."""
    options, policy_hook = policed(options)
    servers = servers_of(options)
    if transport is None:
        plugins_checked(options)
    program = program_of(options, transport)

    def again(how: Resumption) -> Plan:
        return _plan(_options_again(options, how), servers, program, reruns=how.reruns)

    first = _plan(options, servers, program)
    course = SessionSetup(
        options,
        first,
        transport or SubprocessTransport(),
        servers,
        clock,
        again,
        as_tool_server=adopted,
        open_journal=recorder(options),
        transcript=transcript_reader(first.launch.env),
        save_flight=flight_recorder(options),
        fork=branch,
        policy_hook=policy_hook,
    )
    return Session(course)


def _options_again(options: Options, how: Resumption) -> Options:
    """The options for another CLI of the same session."""
    if how.is_new:
        # As at first: a fork that was lost before it was written still begins with its history.
        return dataclasses.replace(options, session_id=how.session_id)
    return dataclasses.replace(
        options,
        resume=how.session_id,
        session_id=None,
        continue_conversation=False,
        fork_session=False,
        resume_session_at=how.at,
        resume_drops_turn=None,
    )


def _plan(
    options: Options, servers: Mapping[str, ToolServer], program: str, *, reruns: bool = False
) -> Plan:
    approved: Iterable[str] = ()
    if options.functions:
        names = servers[FUNCTIONS].tool_names
        approved = [f"mcp__{FUNCTIONS}__{name}" for name in names]
    return plan(
        options,
        program=program,
        host_env=os.environ,
        new_session_id=new_uuid(),
        servers=servers,
        approved=approved,
        reruns=reruns,
    )
