from __future__ import annotations

from steersman._session.sent_prompts import PromptCount


def test_the_first_prompt_after_each_checkpoint_is_known_and_no_other_is_kept() -> None:
    count = PromptCount()
    count.sent("a")
    first = count.checkpoint()
    for number in range(1000):
        count.sent(f"b{number}")
    second = count.checkpoint()

    assert (first, second) == (1, 1001)
    assert (count.first_after(first), count.first_after(second)) == ("b0", None)
    assert count.first_after(5) is None
    assert len(count._after) == 2


def test_two_checkpoints_at_one_point_are_one() -> None:
    count = PromptCount()
    first = count.checkpoint()
    count.sent("a")

    assert count.first_after(first) == "a"
    assert count.checkpoint() == 1


def test_after_a_rewind_the_next_prompt_is_the_first_after_the_checkpoint() -> None:
    count = PromptCount()
    first = count.checkpoint()
    count.sent("a")
    second = count.checkpoint()
    count.sent("b")

    count.rewind(first)
    count.sent("c")

    assert count.first_after(first) == "c"
    assert count.first_after(second) is None
    assert count.checkpoint() == 1
