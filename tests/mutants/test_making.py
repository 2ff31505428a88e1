from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mutmut", reason="of the extra `mutate`")

from tests.mutants.making import mutants_of

SOURCE = '''"""A page."""

from __future__ import annotations

__all__ = ["f"]

LIMIT = 3


class Box:
    """A box."""

    size: int | None = None

    def f(self, a: str | None = None) -> int:
        """Return a number."""
        if a:
            self.g("a word", key="word")
        return LIMIT
'''


def test_a_file_has_these_mutants_and_each_can_be_compiled(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    path.write_text(SOURCE)

    found = mutants_of(tmp_path, path)

    assert [(each.line, each.function, each.before, each.after) for each in found] == [
        (7, "", "3", "4"),
        (17, "Box.f", "a", "not (a)"),
        (18, "Box.f", 'self.g("a word", key="word")', "pass"),
        (18, "Box.f", 'self.g("a word", key="word")', 'self.g(None, key="word")'),
        (18, "Box.f", 'self.g("a word", key="word")', 'self.g("a word", key=None)'),
        (18, "Box.f", 'self.g("a word", key="word")', 'self.g(key="word")'),
        (18, "Box.f", 'self.g("a word", key="word")', 'self.g("a word", )'),
        (18, "Box.f", '"word"', '"XXword"'),
        (19, "Box.f", "return LIMIT", "return None"),
    ]
    for each in found:
        compile(each.source(), "box.py", "exec")
        assert each.source() != SOURCE
