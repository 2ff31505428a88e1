"""A stand-in for the CLI: the same bytes as `stand_in.c`, for machines without a compiler.

The lines come from `frames.txt`; the prompt selects them: `bench KIND COUNT SIZE WINDOW`, where
WINDOW is microseconds between two messages for the kinds `trickle` and `stamped`.
Runs as a program and knows nothing of the SDKs.
"""

from __future__ import annotations

import os
import re
import selectors
import sys
import time
from collections.abc import Iterator
from pathlib import Path

FRAMES = Path(__file__).with_name("frames.txt")
FULL = 256 * 1024
CHUNK = 1024 * 1024
REQUESTS = ("permission", "hook", "tool")
MIXED = "mixed"
"""A kind of turn with all kinds of requests in alternation."""
TRICKLES = ("trickle", "stamped")
"""Kinds of turns that write one partial message at a time; the texts of the second are times."""
PARTIAL = ("partial", *TRICKLES)
STATES = ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_SDK_READS_SESSION_STATE")
HANDSHAKE = ("mcp_initialized", "mcp_list")
BAD_ANSWER = 3


def load_frames() -> dict[str, str]:
    """Return the CLI's lines by name, with placeholders."""
    lines = FRAMES.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)


class StandIn:
    """Takes lines from the host, and writes the CLI's lines to `pending`."""

    def __init__(self, arguments: list[str]) -> None:
        self._frames = load_frames()
        self._replays = "--replay-user-messages" in arguments
        self._has_server = any("mcpServers" in each and '"sdk"' in each for each in arguments)
        self._reports_states = any(name in os.environ for name in STATES)
        self._is_ready = False
        self._handshakes = 0
        self._uuids = 0
        self._order: tuple[str, int, int, int] | None = None
        self._turn: Iterator[None] | None = None
        self._answered = 0
        self._open: dict[str, int] = dict.fromkeys(REQUESTS, 0)
        ids = [each.partition("=")[2] for each in arguments if each.startswith("--session-id=")]
        self._marks = {
            "S": ids[0] if ids else "00000000-0000-4000-8000-0000000000aa",
            "M": "bench" if self._has_server else "",
            **dict.fromkeys("IXPHRNV", ""),
        }
        self.pending: list[bytes] = []
        self.weight = 0
        self.next_at = 0
        """When the next message of a trickle is due, in nanoseconds; 0 if nothing is waited for."""

    def advance(self) -> None:
        """Write as much as possible now."""
        if self._turn is None and self._order is not None and self._is_ready:
            order, self._order = self._order, None
            self._turn = self._run(*order)
        if self._turn is not None and next(self._turn, self) is self:
            self._turn = None

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._turn is not None

    def _run(self, kind: str, count: int, size: int, window: int) -> Iterator[None]:
        """Run one turn. Yields while the host must answer or the pipe is full."""
        self._answered, asks = 0, kind in (*REQUESTS, MIXED)
        self._marks.update(I="1", X="x" * size)
        self._begin(kind)
        if kind in TRICKLES:
            yield from self._trickle(kind, count, window * 1000)
        for number in range(1, 0 if kind in TRICKLES else count + 1):
            while self.weight >= FULL or (asks and number - 1 - self._answered >= window):
                yield
            if kind != "partial":
                self._marks["I"] = str(number)
            self._write_item(REQUESTS[number % len(REQUESTS)] if kind == MIXED else kind)
        if kind == "backlog":
            self._write_item("permission")
        while self._answered < {"backlog": 1}.get(kind, count if asks else 0):
            yield
        self._end(kind, count)

    def _trickle(self, kind: str, count: int, gap: int) -> Iterator[None]:
        """Write partial messages `gap` nanoseconds apart. One that is late delays the others."""
        text, self.next_at = self._marks["X"], time.monotonic_ns() + gap
        for _ in range(count):
            while self.weight or time.monotonic_ns() < self.next_at:
                yield
            now = time.monotonic_ns()
            self.next_at = now + gap
            self._marks["X"] = str(now) if kind == "stamped" else text
            self._write("partial")
        self.next_at, self._marks["X"] = 0, text

    def _begin(self, kind: str) -> None:
        named = bool(self._marks["P"])
        self._marks["N"] = self._fill("named") if named else ""
        self._marks["V"] = self._fill("listed") if self._has_server else ""
        self._write(*(["queued", "started"] if named else []))
        self._write(*(["running"] if self._reports_states else []), "init")
        self._write(*(["replay"] if self._replays and named else []))
        self._write(*(["message_start", "block_start"] if kind in PARTIAL else []))

    def _end(self, kind: str, count: int) -> None:
        if kind in PARTIAL:
            self._write("assistant", "block_stop", "message_delta", "message_stop")
        self._marks["X"] = f"done {count}"
        self._write("result")
        self._write(*(["completed"] if self._marks["P"] else []))
        self._write(*(["idle"] if self._reports_states else []))

    def _write_item(self, kind: str) -> None:
        """Write one item, and count it as open if it is a request."""
        if kind in self._open:
            self._open[kind] += 1
        self._write("assistant" if kind == "backlog" else kind)

    def _write(self, *names: str) -> None:
        for name in names:
            line = self._fill(name).encode() + b"\n"
            self.pending.append(line)
            self.weight += len(line)

    def _fill(self, name: str) -> str:
        return re.sub("@([USIXPHMRNV])", self._mark, self._frames[name])

    def _mark(self, found: re.Match[str]) -> str:
        if found[1] != "U":
            return self._marks[found[1]]
        self._uuids += 1
        return f"00000000-0000-4000-8000-{self._uuids:012x}"

    # Lines from the host are matched by substrings, which is unambiguous for these hosts.

    def receive(self, line: str) -> None:
        """Handle one line from the host."""
        if '"control_response"' in line:
            self._on_answer(line)
        elif '"control_request"' in line:
            self._on_request(line)
        elif order := re.search(r"bench (\w+) (\d+) (\d+) (\d+)", line):
            self._marks["P"] = value_of(line, "uuid")
            self._order = (order[1], int(order[2]), int(order[3]), int(order[4]))

    def _on_request(self, line: str) -> None:
        self._marks["R"] = value_of(line, "request_id")
        if value_of(line, "subtype") != "initialize":
            self._write("success")
            return
        self._marks["H"] = value_of(line, "hookCallbackIds")
        if server := value_of(line, "sdkMcpServers"):
            self._has_server, self._marks["M"] = True, server
        # With a manifest the CLI needs no MCP handshake.
        self._is_ready = not self._has_server or '"sdkMcpServerManifests"' in line
        self._write(*([] if self._is_ready else ["mcp_initialize"]), "initialize")

    def _on_answer(self, line: str) -> None:
        if '"error"' in line:
            refuse("an error for an answer", line)
        if not self._is_ready:
            self._write(*HANDSHAKE[self._handshakes : self._handshakes + 1])
            self._handshakes += 1
            self._is_ready = self._handshakes > len(HANDSHAKE)
            return
        answered = answered_by(line)
        if not self._open[answered]:
            refuse("no request is open for this answer", line)
        self._open[answered] -= 1
        self._answered += 1


def answered_by(line: str) -> str:
    """Return the kind of request that an answer is for. The answer to a hook is empty."""
    if '"allow"' in line:
        return "permission"
    return "tool" if '"content"' in line else "hook"


def value_of(line: str, key: str) -> str:
    """Return the string value of a key, or the first of a list of strings."""
    found = re.search(rf'"{key}"[ :\[]*"([^"]*)"', line)
    return found[1] if found else ""


def refuse(why: str, line: str) -> None:
    """Exit, because the host sent a wrong answer."""
    sys.stderr.write(f"stand-in: {why}: {line[:300]}\n")
    sys.exit(BAD_ANSWER)


def talk(stand_in: StandIn) -> None:
    """Move bytes between the pipes and `stand_in` until the host closes its side."""
    os.set_blocking(1, False)
    rest, out, at_end = b"", b"", False
    while not at_end or out:
        stand_in.advance()
        if stand_in.pending:
            out += b"".join(stand_in.pending)
            stand_in.pending.clear()
        out = out[write(out) :]
        stand_in.weight = len(out)
        left = (stand_in.next_at - time.monotonic_ns()) / 1e9 if stand_in.next_at else None
        ready = wait(reads=not at_end, writes=bool(out), timeout=left)
        if 0 in ready:
            chunk = os.read(0, CHUNK)
            at_end = not chunk
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                stand_in.receive(line.decode())


def write(out: bytes) -> int:
    """Write to stdout. Return how many bytes of `out` were written."""
    try:
        return os.write(1, out) if out else 0
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        sys.exit(0)


def wait(*, reads: bool, writes: bool, timeout: float | None) -> set[int]:
    """Wait for the pipes, or for the next message. Return the pipes that are ready."""
    with selectors.SelectSelector() as selector:
        if reads:
            selector.register(0, selectors.EVENT_READ)
        if writes:
            selector.register(1, selectors.EVENT_WRITE)
        return {key.fd for key, _ in selector.select(timeout)}


if __name__ == "__main__":
    if {"-v", "--version"} & set(sys.argv):
        print("2.1.325 (Claude Code)")
    else:
        talk(StandIn(sys.argv[1:]))
