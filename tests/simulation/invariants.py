"""What must be true of every run, whatever went wrong in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from steersman.journal import Entry, Kind, Lagged, Phase
from steersman.journal.snapshot import TABLE
from steersman.options import Revival
from steersman.testing.faults import HARMLESS, Corrupt, Drop, Duplicate, Truncate
from tests.simulation.playing import LIMIT, Run

MARK = re.compile(r"<p(\d)[.>]")
LAGGED = "(ReaderLagged)"
SPARED = (
    '"type":"assistant"',
    '"type":"result"',
    '"isReplay":true',
    '"state":"started"',
    '"state":"completed"',
    '"state":"idle"',
    '"text_delta"',
)
"""Lines of which one may be lost, and the turn still ends as it would have."""
CENT = 1e-9
MOST = Revival().most
BLOCKED = "UserPromptSubmit operation blocked"
GARBLING = (Corrupt, Drop, Duplicate, Truncate)


def broken(run: Run) -> list[str]:
    """Everything that is wrong with a run."""
    if run.failure is not None:
        return [f"the run itself failed: {run.failure!r}"]
    return [
        f"{check.__name__.replace('_', ' ')}: {what}" for check in INVARIANTS for what in check(run)
    ]


# --- No hang, no leak -------------------------------------------------------------------


def nothing_is_left(run: Run) -> Iterator[str]:
    yield from run.left


def nothing_surprises(run: Run) -> Iterator[str]:
    yield from run.surprises
    yield from run.cli.script.surprises
    if run.took >= LIMIT:
        yield f"it took {run.took:g} s"


def closing_is_bounded(run: Run) -> Iterator[str]:
    """By the transport's ladder and the time that handlers get to clean up, whatever happens."""
    if run.closing_took > 4 * run.scenario.grace + 10:
        yield f"it took {run.closing_took:g} s"


def the_costs_add_up(run: Run) -> Iterator[str]:
    costs = sum(result.cost_usd for result in run.results.values())
    if not _is_disturbed(run) and abs(costs - run.session.cost_usd) > CENT:
        yield f"the turns cost {costs:g}, the session {run.session.cost_usd:g}"


# --- Turns ------------------------------------------------------------------------------


def every_turn_settles(run: Run) -> Iterator[str]:
    for number, turn in run.turns.items():
        if not turn.is_settled:
            yield f"<p{number}> is still open"


def every_turn_settles_once(run: Run) -> Iterator[str]:
    if run.has_lagged:
        return
    told = Counter(uuid for each in _kept(run) if each.kind is Kind.SETTLED for uuid in each.turns)
    expected = Counter(turn.uuid for turn in run.turns.values())
    if told != expected:
        yield f"settled {sorted(told.values())} times, {len(expected)} turns"


def every_prompt_goes_out_once_to_each_cli(run: Run) -> Iterator[str]:
    sent = Counter(each["uuid"] for each in run.cli.received if each.get("type") == "user")
    most = max(1, len(run.cli.launches))
    yield from (f"{uuid} was sent {times} times" for uuid, times in sent.items() if times > most)
    held = run.scenario.style == "session"
    unknown = set(sent) - {turn.uuid for turn in run.turns.values()} if held else set[str]()
    yield from (f"{uuid} is nobody's" for uuid in unknown)


def the_model_hears_every_prompt_once(run: Run) -> Iterator[str]:
    if not run.cli.asked:
        return
    last = run.cli.asked[-1].body["messages"]
    texts = [
        block["text"]
        for message in last
        if message["role"] == "user"
        for block in message["content"]
        if block["type"] == "text"
    ]
    heard = Counter(mark for text in texts for mark in MARK.findall(text))
    yield from (f"<p{mark}> was heard {times} times" for mark, times in heard.items() if times > 1)


def every_text_belongs_to_its_prompt(run: Run) -> Iterator[str]:
    for number, result in run.results.items():
        marks = set(MARK.findall(result.text + run.texts[number]))
        if marks - {str(number)}:
            yield f"<p{number}> says {result.text!r}"


def an_undisturbed_turn_says_all_that_the_model_said(run: Run) -> Iterator[str]:
    for number, result in run.results.items():
        prompt = run.scenario.prompts[number - 1]
        # A prompt whose hook is lost because the session closes is blocked, and completes so.
        is_blocked = result.answer.startswith(BLOCKED)
        if _is_disturbed(run) or prompt.traits or is_blocked or not result.is_success:
            continue
        if result.text != prompt.text:
            yield f"<p{number}> says {result.text!r}, not {prompt.text!r}"


def the_pieces_make_the_text(run: Run) -> Iterator[str]:
    for number, result in run.results.items():
        pieces = run.texts[number]
        if not _is_garbled(run) and pieces not in (result.text, LAGGED):
            yield f"<p{number}>: {pieces!r} is not {result.text!r}"


def every_outcome_has_a_reason(run: Run) -> Iterator[str]:
    for number, result in run.results.items():
        if result.outcome not in _possible_outcomes(run, number):
            yield f"<p{number}> is {result.outcome}: {result.reason}"
        if result.outcome == "failed" and not result.reason:
            yield f"<p{number}> failed without a word"


def _possible_outcomes(run: Run, number: int) -> set[str]:
    """`completed`, and whatever else something in the scenario accounts for."""
    prompt, actions = run.scenario.prompts[number - 1], run.scenario.actions
    possible = {"completed"}
    if "fails" in prompt.traits:
        possible |= {"failed"}
    if "never ends" in prompt.traits:
        # The watchdog's patience is as long as the host's.
        possible |= {"failed"}
    if "interrupts itself" in prompt.traits:
        possible |= {"interrupted"}
    interrupts = [each for each in actions if each.deed.startswith("interrupt")]
    if any(each.prompt is None or each.prompt not in run.turns for each in interrupts):
        possible |= {"interrupted"}
    if any(each.prompt == number for each in interrupts):
        possible |= {"interrupted"}
    if any(each.deed == "interrupt all" for each in interrupts):
        possible |= {"cancelled"}
    # Closed before its end, or behind one that has none.
    endless = {each.number for each in run.scenario.prompts if "never ends" in each.traits}
    is_closed = not run.scenario.is_patient or any(each.deed == "close" for each in actions)
    if is_closed or endless & {*range(1, number + 1)}:
        possible |= {"cancelled", "interrupted"}
    if not _is_made_up_for(run):
        possible |= {"cancelled", "interrupted", "failed"}
    return possible


def _is_made_up_for(run: Run) -> bool:
    """Return whether the faults of a run must not change any outcome.

    A duplicated line counts once. Several messages mark the end of a turn, so one of them may be
    lost; so may messages that only describe the model's progress.
    """
    bad = [each for each in run.transport.happened if not isinstance(each, (*HARMLESS, Duplicate))]
    return not bad or (len(bad) == 1 and isinstance(bad[0], Drop) and bad[0].at in SPARED)


# --- State, journal, readers ------------------------------------------------------------


def the_phases_are_a_path_in_the_table(run: Run) -> Iterator[str]:
    if run.has_lagged:
        return
    states = [
        (_phase(each.details["before"]), _phase(each.details["after"]))
        for each in _kept(run)
        if each.kind is Kind.PHASE
    ]
    moves = [(before, after) for before, after in states if before is not after]
    if moves and moves[0][0] is not Phase.IDLE:
        yield f"it begins with {moves[0]}"
    yield from (
        f"{one} is not followed by {two}" for one, two in pairwise(moves) if one[1] != two[0]
    )
    for before, after in moves:
        if after not in TABLE[before].values():
            yield f"no move leads from {before} to {after}"


def _phase(state: str) -> Phase:
    """The phase of a state: what waits is running."""
    return Phase.RUNNING if state.startswith("waiting_") else Phase(state)


def it_is_not_idle_while_a_prompt_is_at_work(run: Run) -> Iterator[str]:
    at_work: set[str] = set()
    for each in _kept(run):
        if each.kind is Kind.SENT:
            at_work |= set(each.turns)
        elif each.kind is Kind.SETTLED:
            at_work -= set(each.turns)
        elif each.kind is Kind.PHASE and each.details["after"] == "idle" and at_work:
            yield f"entry {each.seq}"


def every_lost_cli_is_told_of(run: Run) -> Iterator[str]:
    """And no more of them in a row are tried than the options allow."""
    told = [each for each in _kept(run) if each.kind is Kind.RESTARTED]
    if run.session.restarts > len(told) and not run.has_lagged:
        yield f"{run.session.restarts} CLIs were replaced, {len(told)} are told of"
    yield from (f"attempt {n}" for each in told if (n := each.details["attempt"]) > MOST)
    if told and not run.scenario.revives:
        yield "nobody wanted a revival"


def the_session_is_over(run: Run) -> Iterator[str]:
    if run.session.last_seq and not run.session.phase.is_over:
        yield f"it is {run.session.phase}"
    if run.startup_error is not None and run.session.phase is not Phase.FAILED:
        yield f"it did not start, and is {run.session.phase}"


def the_journal_has_no_gap(run: Run) -> Iterator[str]:
    for journal in run.journals:
        expected = 1
        for each in journal:
            if isinstance(each, Lagged):
                expected += each.lost
            elif each.seq != expected:
                yield f"{each.seq} stands where {expected} should"
                return
            else:
                expected += 1
        if expected != run.session.last_seq + 1:
            yield f"it was read up to {expected - 1} of {run.session.last_seq}"


def all_readers_read_the_same(run: Run) -> Iterator[str]:
    """Those that lag see less, but nothing else."""
    by_number = {each.seq: each for journal in run.journals for each in _entries(journal)}
    for journal in run.journals:
        if any(by_number[each.seq] is not each for each in _entries(journal)):
            yield "two readers were given two entries under one number"


# --- Guards -----------------------------------------------------------------------------


def nothing_runs_that_was_denied(run: Run) -> Iterator[str]:
    yield from (f"{each} ran" for each in run.house.ran if each in run.house.denied)


def nothing_runs_that_was_not_allowed(run: Run) -> Iterator[str]:
    yield from (f"{each} ran" for each in run.house.ran if each not in run.house.allowed)


def no_tool_runs_twice(run: Run) -> Iterator[str]:
    if run.session.restarts:
        # At least once: a turn that is run again calls its tools again.
        return
    ran = Counter([*run.house.ran, *run.house.noted])
    yield from (f"{what} ran {times} times" for what, times in ran.items() if times > 1)


INVARIANTS: Sequence[Callable[[Run], Iterator[str]]] = (
    nothing_is_left,
    nothing_surprises,
    closing_is_bounded,
    the_costs_add_up,
    every_turn_settles,
    every_turn_settles_once,
    every_prompt_goes_out_once_to_each_cli,
    every_lost_cli_is_told_of,
    the_model_hears_every_prompt_once,
    every_text_belongs_to_its_prompt,
    an_undisturbed_turn_says_all_that_the_model_said,
    the_pieces_make_the_text,
    every_outcome_has_a_reason,
    the_phases_are_a_path_in_the_table,
    it_is_not_idle_while_a_prompt_is_at_work,
    the_session_is_over,
    the_journal_has_no_gap,
    all_readers_read_the_same,
    nothing_runs_that_was_denied,
    nothing_runs_that_was_not_allowed,
    no_tool_runs_twice,
)


def _is_disturbed(run: Run) -> bool:
    """Whether a fault struck that loses, doubles or ends something."""
    return any(not isinstance(fault, HARMLESS) for fault in run.transport.happened)


def _is_garbled(run: Run) -> bool:
    """Whether single lines were lost, doubled or changed."""
    return any(isinstance(fault, GARBLING) for fault in run.transport.happened)


def _entries(journal: Sequence[Entry | Lagged]) -> list[Entry]:
    return [each for each in journal if isinstance(each, Entry)]


def _kept(run: Run) -> list[Entry]:
    return _entries(run.entries)
