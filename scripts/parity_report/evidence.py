"""Which test exercises what, read from the sources of the tests.

Takes sources and returns, for marks (see `marks`), the test that shows them best. A test touches
what its code touches, and what its fixtures, helpers and tables touch.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from scripts.parity_report.marks import (
    TAKE_OPTIONS,
    UNPACKS,
    Module,
    names_in,
    passes_options_on,
)

__all__ = ["Evidence", "Test"]

ONLY_CHECKED = "tests/options/"
"""Tests that only check values of options do not show what an option does."""

Rank = tuple[bool, bool, bool, int, bool, str, int]

Spot = tuple[str, str]
"""The path of a module and a name that it defines."""


@dataclass(frozen=True, slots=True)
class Test:
    """A test function."""

    path: str
    name: str
    line: int
    is_live: bool

    def __str__(self) -> str:
        return f"{self.path}::{self.name}"


@dataclass(frozen=True)
class Evidence:
    """Every test with its marks. `sources` are contents of files, by path in the repository."""

    sources: Mapping[str, str]

    def best(
        self,
        marks: Iterable[str],
        near: str = "",
        *,
        names: Collection[str] = (),
        may_be_live: bool = True,
        not_by: Collection[str] = (),
    ) -> Test | None:
        """Return the best test for any of `marks`, but none of those that `not_by` names.

        With `names`, the test must have one of these marks too.

        Tests on the stock CLI come first, then tests named by hand, tests that touch the mark
        directly, and tests below `near`.
        """
        found = [
            (mark, is_direct, test)
            for mark in marks
            for is_direct, test in self._tests.get(mark, [])
            if (may_be_live or not test.is_live) and str(test) not in not_by
            if not names or not self._all_marks(test).isdisjoint(names)
        ]

        def rank(each: tuple[str, bool, Test]) -> Rank:
            mark, is_direct, test = each
            own = self._marks((test.path, test.name))
            # An option in a test with `raises` may never have reached a CLI.
            is_bad = mark.startswith("option:") and ".raises" in own
            # A test that runs for each row of a table shows more than one that reads the table.
            distance = 0 if is_direct else 1 if ".parametrize" in own else 2
            is_far = not test.path.startswith(near)
            is_found = not mark.startswith("test:")
            return (is_bad, not test.is_live, is_found, distance, is_far, test.path, test.line)

        return min(found, key=rank)[2] if found else None

    @cached_property
    def _modules(self) -> dict[str, Module]:
        return {path: Module(path, ast.parse(text)) for path, text in self.sources.items()}

    @cached_property
    def _tests(self) -> dict[str, list[tuple[bool, Test]]]:
        found: dict[str, list[tuple[bool, Test]]] = {}
        for module in self._modules.values():
            for function in module.tests():
                test = Test(module.path, function.name, function.lineno, module.is_live(function))
                found[f"test:{test}"] = [(True, test)]
                if not module.is_evidence:
                    continue
                own = self._marks((module.path, function.name))
                for mark in self._reached((module.path, function.name)):
                    found.setdefault(_effective(mark, test), []).append((mark in own, test))
        return found

    def _all_marks(self, test: Test) -> set[str]:
        spot = test.path, test.name
        if spot not in self._all:
            self._all[spot] = self._reached(spot)
        return self._all[spot]

    @cached_property
    def _all(self) -> dict[Spot, set[str]]:
        return {}

    def _reached(self, start: Spot) -> set[str]:
        """Return the marks of a definition and of everything in the tests that it uses."""
        seen, waiting = {start}, [start]
        while waiting:
            spot = waiting.pop()
            new = [each for each in self._used(spot) if each not in seen]
            seen.update(new)
            waiting += new
        marks = {mark for spot in seen for mark in self._marks(spot)}
        return {mark.removeprefix("table ") for mark in marks} if UNPACKS in marks else marks

    def _used(self, spot: Spot) -> list[Spot]:
        if spot not in self._uses:
            module = self._modules[spot[0]]
            names = {name for node in module.defined[spot[1]] for name in names_in(node)}
            homes = [self._home(module, name) for name in sorted(names)]
            self._uses[spot] = [home for home in homes if home is not None]
        return self._uses[spot]

    @cached_property
    def _uses(self) -> dict[Spot, list[Spot]]:
        return {}

    def _home(self, module: Module, name: str) -> Spot | None:
        """Return where the tests define `name`: this module, an imported one, or a conftest."""
        if name in module.defined:
            return module.path, name
        dotted, _, last = module.imports.get(name, "").rpartition(".")
        folder = module.path.rpartition("/")[0]
        for path, known in (
            (f"{dotted.replace('.', '/')}.py", last),
            (f"{dotted.replace('.', '/')}/__init__.py", last),
            (f"{folder}/conftest.py", name),
            ("tests/conftest.py", name),
        ):
            if path in self._modules and known in self._modules[path].defined:
                return path, known
        return None

    def _marks(self, spot: Spot) -> frozenset[str]:
        if spot not in self._marked:
            module = self._modules[spot[0]]
            nodes = module.defined[spot[1]]
            self._marked[spot] = frozenset(
                mark for node in nodes for mark in module.marks(node, self._takers)
            )
        return self._marked[spot]

    @cached_property
    def _marked(self) -> dict[Spot, frozenset[str]]:
        return {}

    @cached_property
    def _takers(self) -> frozenset[str]:
        """Functions that take options, including functions of the tests."""
        trees = [each.tree for each in self._modules.values()]
        return TAKE_OPTIONS | {
            each.name for tree in trees for each in ast.walk(tree) if passes_options_on(each)
        }


def _effective(mark: str, test: Test) -> str:
    """Return the mark that this test may count for; empty for none.

    On the stock CLI, a test that iterates over a table of ours may reach only some of its rows.
    """
    if mark.startswith("each:") and test.is_live:
        return ""
    is_only_checked = mark.startswith("option:") and test.path.startswith(ONLY_CHECKED)
    return "" if is_only_checked else mark
