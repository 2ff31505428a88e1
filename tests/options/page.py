"""The page that lists every option, made from the fields and the launch table.

`python -m tests.options.page` writes it again.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from steersman._launch.plan import ROWS
from steersman.options import fields

__all__ = ["PAGE", "table"]

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
BEGIN, END = "<!-- options: begin -->\n", "<!-- options: end -->\n"


def sections() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the fields with their docstrings, by the section comment above them."""
    source = inspect.getsource(fields)
    (options,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "Options"
    ]
    lines, found = source.splitlines(), list[tuple[str, list[tuple[str, str]]]]()
    for node, after in zip(options.body, options.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = lines[node.lineno - 2].strip()
            if above.startswith("# "):
                found.append((above[2:], []))
            found[-1][1].append((node.target.id, docstring(after)))
    return found


def docstring(node: ast.stmt) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return " ".join(str(node.value.value).split()) if is_text else ""  # type: ignore[attr-defined]


def table() -> str:
    """The part of the page between the marks."""
    lines: list[str] = []
    for title, rows in sections():
        lines += [f"## {title}", "", "| option | what it does | how it reaches the CLI |"]
        lines.append("|---|---|---|")
        lines += [f"| `{name}` | {text} | {ROWS[name].carrier} |" for name, text in rows]
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The whole page, with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
