"""`steersman report`: explains a flight record, which a session wrote after an error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject, is_array, is_mapping
from steersman.cli.page import Page, console_for
from steersman.cli.run_json import line_of
from steersman.errors import UsageError

NAMES = "flight-*.json"
KNOWN_FORMAT = 1
LONGEST = 200


def report(*, bundle: str, last: int, is_json: bool) -> None:
    """Explain a flight record."""
    found = read_bundle(bundle)
    if is_json:
        print(line_of(found))
        return
    page = Page(console_for(sys.stdout))
    for label, text in explained(found, last):
        page.line(label, text)


def read_bundle(given: str) -> JsonDict:
    """Return a flight record. Raises `UsageError`."""
    path = Path(given)
    if path.is_dir():
        names = sorted(path.glob(NAMES))
        if not names:
            raise UsageError("BUNDLE", given, f"a directory with files {NAMES}")
        path = names[-1]
    allowed = "the file of a flight record"
    try:
        found = _json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError("BUNDLE", given, f"{allowed} ({error.strerror})") from None
    except ValueError:
        raise UsageError("BUNDLE", given, allowed) from None
    number = found.get("flight_record") if _json.is_object(found) else None
    if not _json.is_object(found) or not isinstance(number, int):
        raise UsageError("BUNDLE", given, allowed)
    if number > KNOWN_FORMAT:
        hint = "a later release of steersman wrote it; update steersman"
        raise UsageError("BUNDLE", given, f"a record of format {KNOWN_FORMAT}", hint=hint)
    return found


def explained(found: JsonObject, last: int) -> Iterator[tuple[str, str]]:
    """Yield labelled lines: what failed, where, what went before, and what to do."""
    at = _number(found.get("at"))
    yield "when", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    yield from _error(found.get("error"), "error")
    yield "session", str(found.get("session_id") or "no session")
    versions = found.get("versions")
    if is_mapping(versions):
        yield "with", ", ".join(f"{name} {value}" for name, value in versions.items())
    options = found.get("options")
    if is_array(options):
        yield "options", ", ".join(map(str, options)) or "none were set"
    yield from _states(found.get("states"), at)
    for name, label in (("sent", "sent"), ("received", "got"), ("events", "event")):
        yield from _lines(found.get(name), label, at, last)
    if (stderr := str(found.get("stderr_tail") or "").strip()) != "":
        yield "stderr", stderr
    if _number(found.get("redacted")):
        yield "secrets", f"{found['redacted']} texts that looked like keys were removed"
    if session := found.get("session_id"):
        yield "try", f"steersman sessions show {session}; steersman run --resume {session} ..."


def _error(error: Json, label: str) -> Iterator[tuple[str, str]]:
    if not is_mapping(error):
        yield label, "no error was recorded"
        return
    code = f" ({error['code']})" if error.get("code") else ""
    yield label, f"{error.get('type')}{code}: {error.get('text')}"
    if error.get("cause"):
        yield from _error(error["cause"], "because")


def _states(states: Json, at: float) -> Iterator[tuple[str, str]]:
    if is_array(states):
        for each in states:
            if is_mapping(each):
                seconds = at - _number(each.get("at"))
                yield (
                    "state",
                    f"{seconds:.1f} s before: {each.get('before')} -> {each.get('after')}",
                )


def _lines(lines: Json, label: str, at: float, last: int) -> Iterator[tuple[str, str]]:
    kept = [each for each in lines if is_mapping(each)] if is_array(lines) else []
    if len(kept) > last:
        yield label, f"{len(kept) - last} more before these"
    for each in islice(kept, max(0, len(kept) - last), None):
        frame = each.get("frame", each.get("head"))
        if frame is None:
            frame = {key: value for key, value in each.items() if key not in ("seq", "at")}
        text = frame if isinstance(frame, str) else _json.dumps(frame).decode()
        text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        yield label, f"{at - _number(each.get('at')):.1f} s before: {text}"


def _number(given: object) -> float:
    return float(given) if isinstance(given, int | float) else 0.0
