"""The results of a scripted CLI: one for each turn, however it ends."""

from __future__ import annotations

from steersman._json import Json, JsonObject
from steersman.testing.scripted.conversation import Prompt
from steersman.testing.scripted.host import Frame, Output, new_id, uuid_fields
from steersman.testing.scripted.reply import ApiFailure
from steersman.testing.scripted.tools import ToolCall
from steersman.testing.scripted.usage import UsageTracker, whole_usage

NO_SUBAGENTS: JsonObject = {
    "spawned": 0,
    "requested": {"background": 0, "foreground": 0, "unset": 0},
    "started_in_background": 0,
    "max_depth": 0,
    "spawned_by_subagents": 0,
    "completed": 0,
    "failed": 0,
    "killed": {"parent": 0, "user": 0, "system": 0},
    "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
    "by_type": {},
}

NOTHING_USED: JsonObject = {
    **whole_usage(
        dict.fromkeys(
            (
                "input_tokens",
                "output_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
            ),
            0,
        )
    ),
    **dict.fromkeys(
        ("inference_geo", "iterations", "output_tokens_details", "service_tier", "speed")
    ),
}


class Results:
    """Writes numbered results, and keeps whether the last one was an error."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._count = 0
        self.last_was_error = False

    def send(self, subtype: str, fields: JsonObject) -> None:
        """Write a result."""
        self.last_was_error = bool(fields["is_error"])
        # The CLI's own order of fields: `type` is near the end.
        self._output.frame(
            {
                "duration_api_ms": 0,
                **fields,
                "fast_mode_state": "off",
                "fast_mode_disabled_reason": "sdk_opt_in_required",
                "subagent_stats": NO_SUBAGENTS,
                "subtype": subtype,
                "type": "result",
                "duration_ms": 0,
                "queued_turn_count": 0,
                "result_index": self._count,
            }
        )
        self._count += 1


class Ending:
    """Collects the fields of one turn's result, and writes the result once."""

    def __init__(
        self, output: Output, usage: UsageTracker, results: Results, prompts: list[Prompt]
    ) -> None:
        self.is_sent = False
        self.is_aborted = False
        """True if the turn was aborted, so that its prompts count as cancelled."""
        self.safety_stops = 0
        self.folded: list[Prompt] = []
        self._output = output
        self._usage = usage
        self._results = results
        self._uuids = [each.uuid for each in prompts if each.uuid is not None]
        self._main_uuid = prompts[-1].uuid
        self._denials: list[Frame] = []
        self._frames_before = output.user_frames

    @property
    def own_fields(self) -> Frame:
        """The fields by which the first messages of the turn name its prompts."""
        return uuid_fields(self._uuids, self._main_uuid)

    @property
    def uuids(self) -> list[str]:
        """The uuids of all prompts of the turn, including those folded into it."""
        return [*self._uuids, *(each.uuid for each in self.folded if each.uuid is not None)]

    def deny(self, call: ToolCall) -> None:
        """Record that a tool call was denied."""
        named = {"tool_name": call.name, "tool_use_id": call.id}
        self._denials.append({**named, "tool_input": call.input})

    def complete(self, *, terminal_reason: str = "completed", **fields: Json) -> None:
        """End the turn with subtype `success`, which the CLI also uses for some aborted turns."""
        usual = {"is_error": False, "api_error_status": None, "result": ""}
        self._send("success", {**usual, "terminal_reason": terminal_reason, **fields})

    def defer_again(self, call: Frame) -> None:
        """End a turn in which a call is deferred that an earlier process had deferred."""
        usual = {"is_error": False, "api_error_status": None, "result": ""}
        self._send("success", {**usual, "stop_reason": "tool_deferred", "deferred_tool_use": call})

    def skip_model(self, text: str) -> None:
        """End a turn without a request to the model."""
        fields = {"is_error": False, "stop_reason": None, "num_turns": 0, "result": text}
        self._send("success", fields)

    def interrupt(self, reason: str, stop_reason: str | None) -> None:
        """End an interrupted turn."""
        self.is_aborted = True
        shown = "null" if stop_reason is None else stop_reason
        diagnostic = f"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={shown}"
        self._fail("error_during_execution", reason, stop_reason, diagnostic)

    def exceed(self, limit: str, reason: str, stop_reason: str | None, problem: str) -> None:
        """End a turn that has reached a limit."""
        self._fail(f"error_{limit}", reason, stop_reason, problem)

    def fail(self, failure: ApiFailure) -> None:
        """End a turn after a failure of the API."""
        self.is_aborted = True
        message = {
            "id": new_id(),
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": failure.text}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": NOTHING_USED,
            **dict.fromkeys(("container", "context_management", "diagnostics", "stop_details")),
        }
        marks = {"error": failure.error, "is_api_error_message": True, **failure.fields}
        self._output.assistant(message, **marks, **self.own_fields)
        self.complete(
            result=failure.text,
            is_error=True,
            terminal_reason="api_error",
            stop_reason="stop_sequence",
            **failure.fields,
        )

    def _fail(self, subtype: str, reason: str, stop_reason: str | None, problem: str) -> None:
        fields = {"is_error": True, "terminal_reason": reason, "stop_reason": stop_reason}
        self._send(subtype, {**fields, "errors": [problem]})

    def _send(self, subtype: str, fields: JsonObject) -> None:
        self.is_sent = True
        for prompt in self.folded:
            self._output.lifecycle(prompt.uuid, "completed")
        turns = 1 + self._output.user_frames - self._frames_before
        self._results.send(
            subtype,
            {
                "num_turns": turns,
                **fields,
                "permission_denials": self._denials,
                **self._usage.settle(is_success=subtype == "success"),
                "safety_stops": self.safety_stops,
                **uuid_fields(self.uuids, self._main_uuid),
            },
        )
