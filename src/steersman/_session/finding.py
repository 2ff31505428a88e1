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
    if setup.stored is None or setup.plan_from is None:
        return setup.plan
    session_id = await setup.stored.find()
    is_own = not parts.options.fork_session
    if is_own:
        await parts.ownership.take(session_id, is_ending)
    found = await setup.stored.restore(session_id)
    if is_own:
        if found.path is not None and found.key is not None:
            parts.mirror.opened(found.path, found.key)
        if found.must_compare:
            parts.mirror.lost_sight(at_once=True)
    if found.resume is None:
        return setup.plan
    plan = setup.plan_from(found.resume)
    parts.slot.open_file(plan.session_id, plan.path)
    return plan
