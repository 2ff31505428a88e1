"""The desk of a session: who answers its CLI, put together from the options."""

from __future__ import annotations

import logging
from typing import Any

from steersman._launch.plan import hook_id
from steersman._session.course import Course
from steersman._session.deciding import Deciding, deciding_for
from steersman._session.helm import Helm
from steersman._session.hooking import Hooking
from steersman._session.inbound import Desk
from steersman._session.serving import Serving
from steersman.control.mcp import McpMessage
from steersman.errors import SteersmanError
from steersman.hooks.deferring import ask_rules
from steersman.journal import Kind
from steersman.ports import Caller, JsonObject

__all__ = ["caller_of", "front_of"]

log = logging.getLogger("steersman.session")


def front_of(session: Any, course: Course, helm: Helm) -> Desk:
    """The desk for `session`, which tools get to see."""
    options = course.options

    def report(where: str, error: BaseException | str) -> None:
        if isinstance(error, BaseException):
            log.error("%s failed", where, exc_info=error)
        else:
            log.error("%s %s", where, error)
        helm.log.fault(where, error)

    deciding, helm.decisions = deciding_for(
        options,
        helm.log.note,
        lambda: helm.ledger.uuid_at_work,
        course.clock,
        report,
        helm.log.write,
    )
    hooks = {hook_id(n): hook for n, hook in enumerate(options.hooks)}
    callers = {key: caller_of(session, key, helm, deciding) for key in course.servers}
    serving = Serving(course.servers, callers, report)
    rules = ask_rules(options.settings, options.managed_settings)
    return Desk(deciding, Hooking(hooks, report, ask_rules=rules), serving, helm.gate)


def caller_of(session: Any, server: str, helm: Helm, deciding: Deciding | None = None) -> Caller:
    """What a tool server under that key gets to know of the session."""
    if deciding is None:
        assert helm.desk is not None
        deciding = helm.desk.deciding

    def notify(message: JsonObject) -> None:
        if helm.life is not None and helm.life.link.is_open:
            verb = McpMessage(server_name=server, message=dict(message))
            helm.life.link.tell(verb, helm.options.request_timeout)

    def report(tool: str, error: BaseException) -> None:
        # The text of somebody else's error may hold secrets; ours does not.
        reason = error.what if isinstance(error, SteersmanError) else ""
        helm.log.note(Kind.TOOL_FAILED, tool=tool, error=type(error).__name__, reason=reason)

    return Caller(
        helm.session_id or "",
        server,
        notify,
        report=report,
        elicit=deciding.elicit,
        session=session,
        turn=lambda: helm.ledger.at_work,
        deps=helm.options.deps,
    )
