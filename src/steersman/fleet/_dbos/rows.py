"""Workflows of DBOS as jobs: what is stored, and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import SteersmanError, TurnStopped
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import NO_SLOT, JobRow, JobSpec, JobState, SegmentEnd

if TYPE_CHECKING:
    from dbos import WorkflowStatus

OPEN = ["ENQUEUED", "PENDING"]
"""The statuses of workflows that have not ended."""
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]

_SPEC = frozenset(each.name for each in fields(JobSpec))


def spec_to_json(spec: JobSpec) -> JsonDict:
    """Return `spec` as JSON."""
    return asdict(spec)


def spec_from_json(found: Mapping[str, Any]) -> JobSpec:
    """Return the spec that `spec_to_json` wrote."""
    return JobSpec(**{name: value for name, value in found.items() if name in _SPEC})


def end_to_json(end: SegmentEnd) -> JsonDict:
    """Return `end` as JSON."""
    return asdict(end)


def end_from_json(found: Mapping[str, Any]) -> SegmentEnd:
    """Return the end that `end_to_json` wrote."""
    fields: dict[str, Any] = {**found, "waits_for": tuple(found["waits_for"])}
    return SegmentEnd(**fields)


def segment_id(job: str, number: int) -> str:
    """Return the id of a segment of a job."""
    return f"{job}.{number}"


def job_of(segment: str) -> str:
    """Return the id of the job of a segment."""
    return segment.rpartition(".")[0]


def row_of(found: WorkflowStatus, segments: Mapping[str, WorkflowStatus]) -> JobRow:
    """Return a job as a row. `segments` are the open segments, by the ids of their jobs."""
    spec = _spec_of(found)
    segment = segments.get(found.workflow_id)
    reported = found.attributes or {}
    state, why = _state(found.status, segment, reported)
    return JobRow(
        spec=spec,
        state=state,
        result=_result(found, spec) if state == "settled" else None,
        attempts=(segment.recovery_attempts or 0) if segment is not None else 0,
        why=why,
        worker=_worker(found, segment) if state != "settled" else "",
        created=(found.created_at or 0) / 1000,
    )


def _spec_of(found: WorkflowStatus) -> JobSpec:
    given: Any = found.input
    # A row that is no job of ours must not hide the others.
    args = given.get("args") if _json.is_object(given) else None
    first: Any = args[0] if args else None
    plain = first if _json.is_object(first) else {}
    return spec_from_json({"conversation": "", "prompt": None, "key": found.workflow_id, **plain})


def _state(
    status: str, segment: WorkflowStatus | None, reported: Mapping[str, Any]
) -> tuple[JobState, str]:
    if status in ENDED:
        return "settled", ""
    if segment is not None:
        return ("running", "") if segment.status == "PENDING" else ("queued", NO_SLOT)
    state = reported.get("state")
    if state in ("parked", "held"):
        return state, str(reported.get("why") or "")
    return "queued", ""


def _worker(found: WorkflowStatus, segment: WorkflowStatus | None) -> str:
    holder = segment if segment is not None and segment.status == "PENDING" else found
    return (holder.executor_id or "") if holder.status == "PENDING" else ""


def _result(found: WorkflowStatus, spec: JobSpec) -> JsonDict:
    output: Any = found.output
    if found.status == "SUCCESS" and _json.is_object(output):
        return dict(output)
    if found.status == "CANCELLED":
        stopped = TurnStopped("cancelled", "the job was cancelled")
        return dict(failed_result(spec, stopped, outcome="cancelled"))
    reason = SteersmanError(f"the job ended as {found.status}: {found.error}")
    return dict(failed_result(spec, reason))


def by_job(segments: Iterable[WorkflowStatus]) -> dict[str, WorkflowStatus]:
    """Return segments by the ids of their jobs."""
    return {job_of(each.workflow_id): each for each in segments}
