"""What becomes of the prompts that a lost CLI had, when another one goes on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from steersman._session.turn import Turn
from steersman.transcripts import has_prompt, was_folded

__all__ = ["Handover", "hand_over"]


@dataclass(frozen=True, slots=True)
class Handover:
    """Each prompt that was written and has not settled, by what is to be done about it."""

    resent: list[Turn] = field(default_factory=list[Turn])
    """Told to the next CLI, which drops those that it knows to be done."""
    joined: list[Turn] = field(default_factory=list[Turn])
    """Part of a turn that the next CLI takes up again: it would run them a second time."""
    lost: list[Turn] = field(default_factory=list[Turn])
    """Begun, and the next CLI cannot take them up."""

    @property
    def taken_up(self) -> list[Turn]:
        """Those whose turn goes on without a word of ours, the first of them first."""
        begun = [turn for turn in self.resent if turn.has_begun]
        return [*begun[:1], *self.joined]


def hand_over(
    turns: Sequence[Turn], lines: Sequence[bytes], *, is_new: bool, is_modern: bool
) -> Handover:
    """Decide by what we know of them, and by the `lines` that the lost CLI wrote down.

    A new conversation knows none of them. A CLI that is not modern runs nothing again.
    """
    told = Handover()
    for turn in turns:
        if is_new:
            told.resent.append(turn)
        elif not is_modern:
            is_begun = turn.has_begun or has_prompt(lines, turn.uuid)
            (told.lost if is_begun else told.resent).append(turn)
        else:
            is_folded = told.taken_up and (turn.has_begun or was_folded(lines, turn.uuid))
            (told.joined if is_folded else told.resent).append(turn)
    return told
