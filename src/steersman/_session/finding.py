"""What the first CLI of a session resumes, if the session has a store."""

from __future__ import annotations

from collections.abc import Callable

from steersman._launch.plan import LaunchPlan
from steersman._session.parts import Parts


async def find_conversation(parts: Parts, is_ending: Callable[[], bool]) -> LaunchPlan:
    """Return the plan of the first CLI, after finding what it resumes in the session store.

    The conversation is locked before it is read. A fork reads one that it does not own.
    """
    setup = parts.setup
    if setup.plan_from is None:
        return setup.plan
    session_id = await parts.mirror.find()
    if not parts.options.fork_session:
        await parts.ownership.take(session_id, is_ending)
    resume = await parts.mirror.restore(session_id)
    if resume is None:
        return setup.plan
    plan = setup.plan_from(resume)
    parts.slot.open_file(plan.session_id, plan.path)
    return plan
