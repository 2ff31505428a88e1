"""`steersman doctor`: can this machine run a session, and if not, why."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import textwrap
from collections.abc import Iterator

from steersman._terminal import one_line
from steersman.cli.output import has_colour
from steersman.cli.statuses import CANNOT_START, COMPLETED
from steersman.diagnosis import Diagnosis, Finding, doctor
from steersman.options import Options

COLOURS = {"ok": "32", "warn": "33", "fail": "1;31", "skip": "2"}
LEAST_WIDTH = 20


def examine(*, cli: str | None, cwd: str | None, is_json: bool) -> int:
    """Look at this machine, and write what is found."""
    diagnosis = asyncio.run(doctor(Options(cli_path=cli, cwd=cwd)))
    if is_json:
        print(json.dumps(diagnosis.to_json()))
    else:
        width = shutil.get_terminal_size((80, 24)).columns
        for line in as_lines(diagnosis, width, is_coloured=has_colour(sys.stdout)):
            print(line)
    return COMPLETED if diagnosis.is_healthy else CANNOT_START


def as_lines(diagnosis: Diagnosis, width: int, *, is_coloured: bool = False) -> Iterator[str]:
    """Yield the lines of a diagnosis, none wider than `width` unless a word is."""
    column = max((len(one_line(each.name)) for each in diagnosis.findings), default=0)
    for each in diagnosis.findings:
        yield from _lines(each, width, column, is_coloured=is_coloured)
    yield diagnosis.summary


def _lines(finding: Finding, width: int, column: int, *, is_coloured: bool) -> Iterator[str]:
    word = finding.status.upper() if finding.status == "fail" else finding.status
    label = f" {word:4}"
    if is_coloured:
        label = f"\x1b[{COLOURS[finding.status]}m{label}\x1b[0m"
    name = one_line(finding.name)
    indent = min(column, max(0, width // 3 - 8)) + 8
    head = f"{name.ljust(indent - 8)} "
    room = max(LEAST_WIDTH, width - indent)
    text = textwrap.wrap(one_line(finding.text), room, break_long_words=False) or [""]
    if len(head) > indent - 7:
        # The name does not fit beside the text.
        yield f"{label}  {name}"
        text = ["", *text]
    else:
        yield f"{label}  {head}{text[0]}"
    cure = textwrap.wrap(f"-> {one_line(finding.cure)}", room, break_long_words=False)
    for line in [*text[1:], *(cure if finding.cure else ())]:
        yield " " * indent + line
