"""The content of `Bash(...)` rules as a pattern: `git push:*`, `git *`, `* --force *`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from steersman._effort import fits_parts


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A rule's content: `a:*` is a prefix of whole words, `*` matches any text."""

    text: str
    parts: tuple[str, ...]
    """The text between the wildcards."""
    may_end: bool = False
    """True if ` *` at the end also matches nothing."""

    def fits(self, text: str) -> bool:
        """Return whether the whole text matches, in time linear in its length."""
        return fits_parts(self.parts, text) or (
            self.may_end and fits_parts((*self.parts[:-2], self.parts[-2][:-1]), text)
        )

    def may_fit(self, texts: str) -> bool:
        """Return whether all parts occur in these texts: if not, the pattern fits none of them."""
        return all(part.strip() in texts for part in self.parts)

    def fits_any(self, texts: Iterable[str]) -> bool:
        """Return whether one of these texts matches as a whole."""
        first = self.parts[0].rstrip()
        return any(text.startswith(first) and self.fits(text) for text in texts)


@functools.lru_cache(maxsize=1024)
def command_pattern(rule: str, *, is_lenient: bool = False) -> CommandPattern:
    """Parse a rule's content."""
    spaced = " ".join(rule.split())
    if rule.endswith(":*"):
        spaced = " ".join(rule[:-2].split())
        return CommandPattern(spaced, (spaced + " ", ""), may_end=True)
    parts = tuple(spaced.split("*"))
    # `git *` also covers `git` alone; the CLI grants that only if it is the only wildcard.
    may_end = spaced.endswith(" *") and (is_lenient or len(parts) == 2)  # noqa: PLR2004
    return CommandPattern(spaced, parts, may_end)
