"""Build the documentation site in build/site: the pages, the examples, and a reference.

The pages stay readable where they are. This copies them, makes a page of each example and of each
public module, and has Zensical build all of it, where a warning is an error. It also writes
`llms.txt`.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"

CHAPTERS: Mapping[str, tuple[str, ...]] = {
    "Begin": (
        "quickstart",
        "tour",
        "tour-files",
        "recipes",
        "command-line",
        "sync",
        "troubleshooting",
        "glossary",
    ),
    "Work with it": (
        *(
            "sessions",
            "prompts",
            "steering",
            "messages",
            "tools",
            "mcp",
            "verbs",
            "options",
            "errors",
        ),
    ),
    "Decide": ("permissions", "asks", "durable", "hooks", "safety"),
    "Keep": ("journal", "stored-sessions", "stores", "mirroring"),
    "Show": ("web", "console", "web-protocol"),
    "Test": ("testing", "cassettes", "faults", "conformance", "releases", "harnesses"),
    "Run": ("transports", "deployment", "debugging", "performance"),
    "Compare": ("compat", "moving-from-python", "moving-from-typescript", "parity"),
}
"""Chapters and their pages, in order; a page that is in none of them comes last."""

MODULES = (
    *("steersman", "steersman.agent", "steersman.options", "steersman.prompts", "steersman.errors"),
    *("steersman.messages", "steersman.control", "steersman.hooks", "steersman.permissions"),
    *("steersman.inbox", "steersman.journal", "steersman.tools", "steersman.sessions"),
    *("steersman.stores", "steersman.transcripts", "steersman.skills", "steersman.transports"),
    *(
        "steersman.observe",
        "steersman.ports",
        "steersman.sync",
        "steersman.web",
        "steersman.testing",
    ),
)
"""The public modules, in the order of the reference."""

TOP_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages above docs/, and their names in the site."""

LONGEST = 200
"""Characters that are shown of a value."""

CONFIG = """\
[project]
site_name = "steersman"
site_description = "Drive the stock Claude Code CLI from Python, dependably"
docs_dir = "build/site-source"
site_dir = "build/site"
use_directory_urls = false
nav = [
{nav}
]

[project.theme]
features = [
  "navigation.indexes", "navigation.sections", "navigation.top",
  "search.highlight", "content.code.copy",
]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"

[project.plugins.mkdocstrings.handlers.python]
paths = ["src"]
inventories = []
[project.plugins.mkdocstrings.handlers.python.options]
show_root_heading = true
show_root_full_path = false
show_source = false
show_signature_annotations = true
separate_signature = true
members_order = "source"
docstring_style = "google"
heading_level = 2
filters = ["!^_"]
"""


def main() -> int:
    """Build the site. Returns 0, or the status of what failed."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    for page in SOURCE.rglob("*.md"):
        page.write_text(_with_site_links(page.read_text(encoding="utf-8")), encoding="utf-8")
    for there, here in TOP_PAGES.items():
        _write(here, _top_page(there))
    examples = [_example_page(path) for path in sorted((ROOT / "examples").glob("[!_]*.py"))]
    _write("examples/index.md", "# Examples\n\n" + "\n".join(_listed(examples)) + "\n")
    reference = [_reference_page(found) for found in _modules()]
    # Not in build/: Zensical reads the folders of its configuration from where that lies.
    config = ROOT / ".zensical.toml"
    config.write_text(CONFIG.format(nav="\n".join(_nav(examples, reference))), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        done = subprocess.run([*command, "-f", config.name], cwd=ROOT, check=False)  # noqa: S603 - our own words
    finally:
        config.unlink()
    if done.returncode == 0:
        (SITE / "llms.txt").write_text(_llms_text(), encoding="utf-8")
        sys.stdout.write(f"{SITE / 'index.html'}\n")
    return done.returncode


def _write(name: str, text: str) -> str:
    path = SOURCE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return name


def _title(name: str) -> str:
    """Return the first heading of a page."""
    for line in (SOURCE / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").replace("`", "")
    return Path(name).stem


# Pages that are in the repository


def _with_site_links(text: str) -> str:
    """Return a page of docs/ with links to other folders changed to pages of the site."""
    text = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](examples/\1.md)", text)
    text = re.sub(r"\]\(\.\./src/steersman/(\w+)\.py\)", r"](reference/steersman.\1.md)", text)
    for there, here in TOP_PAGES.items():
        text = text.replace(f"](../{there}", f"]({here}")
    # What only a checkout has is named, and not linked.
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)


def _top_page(name: str) -> str:
    """Return a page from above docs/, with its links changed."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"\]\(docs/", "](", text)
    text = re.sub(r"\]\(examples/?\)", "](examples/index.md)", text)
    text = re.sub(r"\]\(examples/(\w+)\.py\)", r"](examples/\1.md)", text)
    for there, here in TOP_PAGES.items():
        text = text.replace(f"]({there}", f"]({here}")
    return re.sub(
        r"\[([^\]]*)\]\((?!https?://)[^)]*(?<!\.md)(?<!\.png)\)(?!\()", _plain_if_missing, text
    )


def _plain_if_missing(found: re.Match[str]) -> str:
    target = found[0].rpartition("](")[2].removesuffix(")").partition("#")[0]
    return found[0] if target and (SOURCE / target).is_file() else found[1]


def _example_page(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(text)) or ""
    page = f'# {path.stem}\n\n{said}\n\n```python title="examples/{path.name}"\n{text}```\n'
    return _write(f"examples/{path.stem}.md", page)


# The reference


def _modules() -> Iterator[ModuleType]:
    for name in MODULES:
        if importlib.util.find_spec(name) is not None:
            yield importlib.import_module(name)


def _reference_page(module: ModuleType) -> str:
    """Write the page of a module: each public name, with the line that imports it."""
    name = module.__name__
    parts = [f"# {name}", inspect.cleandoc(module.__doc__ or "")]
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        home = _home_of(thing)
        parts.append(f"```python\nfrom {name} import {public}\n```" if home else f"## {public}")
        if home:
            parts.append(f"::: {home}")
        else:
            parts.append(f"```python\nfrom {name} import {public}\n```\n\n`{_short(thing)}`")
    return _write(f"reference/{name}.md", "\n\n".join(parts) + "\n")


def _home_of(thing: object) -> str | None:
    """Return where a class or function is written; None for values and names for types."""
    if inspect.isclass(thing) or inspect.isfunction(thing):
        home = f"{thing.__module__}.{thing.__qualname__}"
        return home if home.startswith("steersman") else None
    return None


def _short(thing: object) -> str:
    text = " ".join(repr(thing).split()).replace("`", "'")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


# What leads to the pages


def _nav(examples: list[str], reference: list[str]) -> Iterator[str]:
    yield '  { "steersman" = "index.md" },'
    placed = {"index.md", "contributing.md", *examples, *reference, "examples/index.md"}
    for chapter, names in CHAPTERS.items():
        here = [f"{name}.md" for name in names if (SOURCE / f"{name}.md").is_file()]
        placed.update(here)
        yield from _chapter(chapter, here)
    yield from _chapter("Examples", ["examples/index.md", *examples])
    yield from _chapter("Reference", reference)
    others = sorted(str(page.relative_to(SOURCE)) for page in SOURCE.rglob("*.md"))
    yield from _chapter(
        "More", ["contributing.md", *(each for each in others if each not in placed)]
    )


def _chapter(title: str, pages: list[str]) -> Iterator[str]:
    if pages:
        yield f'  {{ "{title}" = ['
        for page in pages:
            yield f'    {{ "{_title(page)}" = "{page}" }},'
        yield "  ] },"


def _listed(pages: list[str]) -> Iterator[str]:
    for page in pages:
        text = (SOURCE / page).read_text(encoding="utf-8")
        said = text.split("\n\n")[1].replace("\n", " ")
        yield f"- [{_title(page)}]({Path(page).name}): {said}"


def _llms_text() -> str:
    """Return the pages as one list for language models: title, address and first sentence."""
    lines = ["# steersman", "", "> Drive the stock Claude Code CLI from Python, dependably.", ""]
    for chapter, names in CHAPTERS.items():
        here = [name for name in names if (SOURCE / f"{name}.md").is_file()]
        if here:
            lines += [f"## {chapter}", ""]
            lines += [
                f"- [{_title(f'{name}.md')}]({name}.md): {_first_words(name)}" for name in here
            ]
            lines.append("")
    return "\n".join(lines)


def _first_words(name: str) -> str:
    text = (SOURCE / f"{name}.md").read_text(encoding="utf-8")
    prose = [
        block
        for block in text.split("\n\n")[1:]
        if not block.startswith(("#", "```", "|", "-", "![", "<"))
    ]
    words = " ".join(prose[0].split()) if prose else ""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).partition(". ")[0].removesuffix(".") + "."


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
