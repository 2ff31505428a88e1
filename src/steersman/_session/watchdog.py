"""The watchdog: stops a CLI that sends nothing for too long, so that it is restarted.

It uses one timer per session and does no work per message. When the timer fires, it checks when the
CLI last sent something, and what the CLI should be doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from steersman._session.cli import CliSlot, RunningCli
from steersman._session.journal_writer import JournalWriter
from steersman._session.prompt_queue import PromptQueue
from steersman.errors import Stalled
from steersman.journal import Entry, Kind
from steersman.journal.calls import ToolCallRecord
from steersman.messages.limits import ApiRetry
from steersman.options import Watchdog


class SilenceWatchdog:
    """Watches the CLI of one session while a prompt is unsettled."""

    def __init__(
        self,
        limits: Watchdog | None,
        slot: CliSlot,
        prompts: PromptQueue,
        log: JournalWriter,
        *,
        has_partials: bool = True,
    ) -> None:
        """With `has_partials`, the CLI sends each message also while the model writes it."""
        self._limits = limits or Watchdog(
            first_token=None, between_events=None, message=None, tool=None, retry=None
        )
        self._model_phase = "first_token" if has_partials else "message"
        self._slot = slot
        self._prompts = prompts
        self._log = log
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None
        self.last = "the start"
        self._retry_delay = 0.0
        self._running_tools: set[str] = set()

    def observe(self, entry: Entry, name: str, calls: Sequence[ToolCallRecord]) -> None:
        """Note the message `name`, and the tool `calls` that begin or end with it."""
        self.last = name
        for call in calls:
            if call.is_running:
                self._running_tools.add(call.tool_use_id)
            else:
                self._running_tools.discard(call.tool_use_id)
        if name == "api_retry" and isinstance(entry.message, ApiRetry):
            self._retry_delay = entry.message.retry_delay_ms / 1000
        elif name == "result":
            self._running_tools.clear()

    def start(self) -> None:
        """Start watching; silence is measured from now on."""
        self.stop()
        cli = self._slot.running
        if cli is not None:
            loop = asyncio.get_running_loop()
            cli.link.last_activity = now = loop.time()
            self._set_alarm(cli, now)

    def reset(self) -> None:
        """Stop watching and forget running tools, because the CLI has exited."""
        self.stop()
        self._running_tools.clear()
        self.last = "the start"

    def stop(self) -> None:
        """Stop watching."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _set_alarm(self, cli: RunningCli, now: float) -> None:
        """Set the timer to the next limit, whichever phase it is for: the phase may change.

        Points in time, no differences: a difference can be too small to move the clock.
        """
        limits = [limit for limit in self._timeouts().values() if limit is not None]
        if limits:
            since = cli.link.last_activity
            ahead = [since + limit for limit in limits if since + limit > now]
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_at(min(ahead, default=now + min(limits)), self._check, cli)

    def _check(self, cli: RunningCli) -> None:
        self._alarm = None
        if cli is not self._slot.running or not cli.link.is_open or self._is_stopping:
            return
        if self._prompts.current is None:
            return
        now = asyncio.get_running_loop().time()
        if cli.tasks.is_awaited:
            # The CLI waits for an answer of this process.
            cli.link.last_activity = now
        phase = self._phase(cli)
        limit, since = self._timeouts()[phase], cli.link.last_activity
        if limit is not None and now >= since + limit:
            self._stalled(cli, phase, now - since)
        else:
            self._set_alarm(cli, now)

    def _phase(self, cli: RunningCli) -> str:
        """Return what the CLI should be doing now."""
        if self._running_tools:
            # Checked first, because the last `stream_event` lines arrive after the tool call.
            return "tool"
        if cli.link.last_kind is Kind.PARTIAL:
            return "between_events"
        return "retry" if self.last == "api_retry" else self._model_phase

    def _timeouts(self) -> dict[str, float | None]:
        limits = self._limits
        retry = None if limits.retry is None else limits.retry + self._retry_delay
        return {
            "first_token": limits.first_token,
            "between_events": limits.between_events,
            "message": limits.message,
            "tool": limits.tool,
            "retry": retry,
        }

    @property
    def _is_stopping(self) -> bool:
        return self._stopping is not None and not self._stopping.done()

    def _stalled(self, cli: RunningCli, phase: str, silence: float) -> None:
        turns = [turn for turn in self._prompts.unsettled if not turn.is_settled]
        last = "stream_event" if cli.link.last_kind is Kind.PARTIAL else self.last
        why = Stalled(phase, silence, last, evidence=cli.link.evidence(phase))
        self._log.note(
            Kind.STALLED,
            tuple(turn.uuid for turn in turns),
            phase=phase,
            since=silence,
            last_event=last,
        )
        stopping = self._slot.stop_turns(turns, why, self._limits.interrupt)
        self._stopping = asyncio.Task(stopping)
