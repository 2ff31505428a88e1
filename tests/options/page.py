"""The page that lists every option, made from the fields, the keywords and the launch table.

`python -m tests.options.page` writes it again.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_args

from steersman._launch.plan import ROWS
from steersman.options import checks, fields, keywords

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


def accepted() -> dict[str, str]:
    """Return the type of each option, as `OptionKwargs` has it; words are spelled out."""
    (listed,) = [
        node
        for node in ast.parse(inspect.getsource(keywords)).body
        if isinstance(node, ast.ClassDef) and node.name == "OptionKwargs"
    ]
    found = {
        node.target.id: ast.unparse(node.annotation).replace("'", '"')
        for node in listed.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for name, text in spelled_out().items():
        found = {option: given.replace(name, text) for option, given in found.items()}
    return found


def spelled_out() -> dict[str, str]:
    """Return the aliases that a reader need not look up, and what they stand for."""
    literals = {
        name: ", ".join(f'"{each}"' for each in get_args(getattr(checks, name)))
        for name in ("Effort", "PermissionMode", "SettingSource")
    }
    return {
        **{name: f"Literal[{texts}]" for name, texts in literals.items()},
        "PluginLike": "Plugin | str | Path | JsonObject",
        "JsonObject": "Mapping[str, Any]",
    }


def table() -> str:
    """The part of the page between the marks."""
    lines, types = list[str](), accepted()
    for title, rows in sections():
        lines += [f"## {title}", "", "| option | accepts | what it does | how it reaches the CLI |"]
        lines.append("|---|---|---|---|")
        for name, text in rows:
            # A table reads a bar as the end of a cell, in code too.
            type_ = types[name].replace("|", "\\|")
            lines.append(f"| `{name}` | `{type_}` | {text} | {ROWS[name].carrier} |")
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The whole page, with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
