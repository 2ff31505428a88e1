"""The code of a job: run segments until the turn is settled, and wait in between.

It has no state but what the engine gives it, so an engine can run it again from the start after a
crash, and give it the same values.
"""

from __future__ import annotations

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman.errors import PoisonedJob, SteersmanError
from steersman.fleet.ports import Engine, JobSpec, SegmentEnd
from steersman.journal.json_form import result_to_json
from steersman.journal.results import Outcome, TurnResult

LONGEST_WAIT = 24 * 3600.0
"""Seconds after which a job looks at its messages again."""


def answered(*asks: str) -> JsonDict:
    """Return the message to a job that these asks have an answer, or have expired."""
    return {"answered": list(asks)}


async def run_job(engine: Engine, spec: JobSpec) -> JsonObject:
    """Run a job to its end and return its result: a `TurnResult` as JSON."""
    number, known = 0, set[str]()
    while True:
        try:
            end = await engine.run_segment(spec, number)
        except PoisonedJob as error:
            return failed_result(spec, error)
        number += 1
        if end.state == "settled":
            return end.result or failed_result(spec, SteersmanError("a segment gave no result"))
        await _pause(engine, spec, end, known)


async def _pause(engine: Engine, spec: JobSpec, end: SegmentEnd, known: set[str]) -> None:
    """Wait until the job can continue. `known` are the asks that are known to have an answer."""
    waits_for = set(end.waits_for)
    if end.state == "parked" and not waits_for:
        return
    is_parked = end.state == "parked"
    state = "parked" if is_parked else "held"
    await engine.put_event(
        spec.id, {"state": state, "why": end.why, "waits_for": list(end.waits_for)}
    )
    if is_parked:
        while not waits_for & known:
            known |= _asks_of(await engine.wait(spec.id, LONGEST_WAIT))
        # An answer that the next segment does not use is no reason to run another one.
        known -= waits_for
    else:
        known |= _asks_of(await engine.wait(spec.id, end.after))
    await engine.put_event(spec.id, {"state": "queued"})


def _asks_of(message: JsonDict | None) -> set[str]:
    found = (message or {}).get("answered")
    return {each for each in found if isinstance(each, str)} if _json.is_array(found) else set()


def failed_result(
    spec: JobSpec, cause: SteersmanError, *, outcome: Outcome = "failed"
) -> JsonObject:
    """Return the result of a job whose turn has no result of its own."""
    written = result_to_json(TurnResult(uuid=spec.id, outcome=outcome, cause=cause))
    found: JsonDict = _json.loads(written)
    return found
