"""`steersman journal`: what a journal file holds, and what a policy would have decided."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

from steersman._json import JsonDict
from steersman.cli.arguments import read_file
from steersman.cli.call_text import brief
from steersman.cli.page import Page, console_for
from steersman.cli.run_json import line_of
from steersman.journal import Entry, Kind
from steersman.journal.decisions import recorded_calls
from steersman.journal.replaying import replay
from steersman.permissions import DryRun, Policy
from steersman.stores import read_journal

NOT_SHOWN = frozenset({Kind.PARTIAL, Kind.BOOKKEEPING})
DECISIONS = frozenset({Kind.ASKED, Kind.DECIDED, Kind.UNDECIDED})
LONGEST = 300
"""How many characters of a line are shown; --json has all of it."""


def show_entries(*, journal: str, after: int, partial: bool, is_json: bool) -> None:
    """Show the entries, one by one."""
    page = Page(console_for(sys.stdout))
    for entry in read_journal(journal):
        if entry.seq <= after or (entry.kind in NOT_SHOWN and not partial):
            continue
        if is_json:
            print(line_of(_object(entry)))
        else:
            text = f"{_time(entry.at)} {entry.kind.value} {_content(entry)}"
            page.line(str(entry.seq), text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def show_cost(*, journal: str, is_json: bool) -> None:
    """Show what each turn cost, and all of them, by model."""
    page = Page(console_for(sys.stdout))
    turns = replay(read_journal(journal)).turns
    models: dict[str, float] = {}
    for number, (uuid, result) in enumerate(turns.items(), start=1):
        for model, usage in result.model_usage.items():
            models[model] = models.get(model, 0.0) + usage.cost_usd
        if is_json:
            fields: JsonDict = {"turn": uuid, "outcome": result.outcome}
            print(line_of({**fields, "cost_usd": result.cost_usd, "duration": result.duration}))
            continue
        tokens = f"{result.usage.input_tokens} in, {result.usage.output_tokens} out"
        text = f"${result.cost_usd:.4f}  {result.outcome}  {result.duration:.1f} s  {tokens}"
        page.line(str(number), text, f"{len(result.tool_calls)} tool calls")
    total = sum(each.cost_usd for each in turns.values())
    if is_json:
        print(line_of({"total_cost_usd": total, "models": models}))
        return
    for model, spent in sorted(models.items()):
        page.line("model", f"${spent:.4f}  {model}")
    page.line("total", f"${total:.4f}  {len(turns)} turn{'s' * (len(turns) != 1)}")


def show_decisions(*, journal: str, is_json: bool) -> None:
    """Show what was asked and decided about tool calls, by whom and why."""
    page = Page(console_for(sys.stdout))
    for entry in read_journal(journal):
        if entry.kind not in DECISIONS:
            continue
        if is_json:
            print(line_of(_object(entry)))
        else:
            page.line(*_decision(entry))


def try_policy(*, journal: str, policy: str, changed: bool, is_json: bool) -> None:
    """Show what the POLICY in a TOML file would have decided about the calls of a journal.

    Each line has what happened, what would happen, and the rule that decides.
    """
    rules = Policy.from_toml(read_file("POLICY", policy))
    found = rules.dry_run(recorded_calls(read_journal(journal)))
    page = Page(console_for(sys.stdout))
    for each in _wanted(found, only_changed=changed):
        call = each.recorded.call
        if is_json:
            print(
                line_of(
                    {
                        "tool": call.tool,
                        "input": dict(call.input),
                        "ran": each.recorded.ran,
                        "verdict": each.verdict,
                        "rule": each.rule,
                        "changes": each.changes,
                    }
                )
            )
            continue
        happened = "ran" if each.recorded.ran else "did not run"
        label = "changed" if each.changes else "same"
        why = each.rule or "no rule decides"
        page.line(label, f"{happened} -> {each.verdict}  {brief(call.tool, call.input)}", why)
    count = sum(each.changes for each in found)
    Page(console_for(sys.stderr)).line("total", f"{len(found)} calls, {count} would change")


def _wanted(found: Iterable[DryRun], *, only_changed: bool) -> Iterator[DryRun]:
    return (each for each in found if each.changes or not only_changed)


def _decision(entry: Entry) -> tuple[str, str, str]:
    details = entry.details
    name = str(details.get("tool_name") or details.get("tool") or details.get("kind") or "")
    what = str(details.get("verdict") or entry.kind.value)
    by = " ".join(str(details[key]) for key in ("source", "by") if details.get(key))
    where = details.get("tool_use_id") or details.get("ask") or details.get("id") or ""
    text = "  ".join(each for each in (_time(entry.at), what, name, by, str(where)) if each)
    return str(entry.seq), text, str(details.get("reason") or "")


def _object(entry: Entry) -> JsonDict:
    fields: JsonDict = {"seq": entry.seq, "at": entry.at, "kind": entry.kind.value}
    if entry.turns:
        fields["turns"] = list(entry.turns)
    if entry.details:
        fields["details"] = dict(entry.details)
    if entry.line:
        fields["line"] = entry.line.decode("utf-8", "replace")
    return fields


def _content(entry: Entry) -> str:
    if entry.line:
        return entry.line.decode("utf-8", "replace")
    return " ".join(f"{key}={value}" for key, value in entry.details.items())


def _time(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at)) if at else "--:--:--"
