"""The keys of a chat."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from steersman.agent import When

ANSWERS = ("y", "a", "n", "e", "?")


class Keys:
    """What the keys do, and what was pressed last."""

    def __init__(
        self,
        press: Callable[[str], None],
        interrupt: Callable[[], None],
        wants_key: Callable[[], bool],
    ) -> None:
        self.wants_key = wants_key
        """Whether something is asked that a key answers."""
        self.when: When = "next"
        """When the line that was typed is to be read."""
        self.is_leaving = False
        """Whether ctrl-c was pressed twice."""
        self._press = press
        self._interrupt = interrupt
        self._is_interrupted = False

    def sends(self, when: When) -> None:
        """Record that a line was sent."""
        self.when = when
        self._is_interrupted = False

    def answers(self, key: str) -> None:
        """Answer what is asked."""
        self._is_interrupted = False
        self._press(key)

    def interrupts(self, leave: Callable[[], None]) -> None:
        """Interrupt the turn; the second time in a row, leave."""
        if self._is_interrupted:
            self.is_leaving = True
            leave()
            return
        self._is_interrupted = True
        self._interrupt()


def key_bindings(keys: Keys, is_empty: Callable[[], bool]) -> KeyBindings:
    """Return the bindings: enter, ctrl-o and ctrl-l send, ctrl-c interrupts, letters answer.

    Letters answer only while nothing is typed: `is_empty`.
    """
    bindings = KeyBindings()

    def sending(when: When) -> Callable[[KeyPressEvent], None]:
        def send(event: KeyPressEvent) -> None:
            keys.sends(when)
            event.current_buffer.validate_and_handle()

        return send

    chosen: tuple[tuple[str, When], ...] = (("enter", "next"), ("c-o", "now"), ("c-l", "later"))
    for name, when in chosen:
        bindings.add(name)(sending(when))

    def interrupt(event: KeyPressEvent) -> None:
        event.current_buffer.reset()
        keys.interrupts(lambda: event.app.exit(exception=EOFError()))

    def answer(event: KeyPressEvent) -> None:
        keys.answers(event.data)

    bindings.add("c-c")(interrupt)
    for key in ANSWERS:
        wanted = Condition(lambda: keys.wants_key() and is_empty())
        bindings.add(key, filter=wanted)(answer)
    return bindings
