"""A conversation as Markdown, HTML or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from steersman.transcripts import (
    SessionInfo,
    StoredMessage,
    entry_of,
    lines_source,
    messages,
    to_html,
    to_json,
    to_markdown,
)
from tests.transcripts.lines import SESSION, entry, sample

ATTACKS = [
    "<script>alert(1)</script>",
    "</pre></details></div></body><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\\<script>alert(1)</script>",
    "[x](javascript:alert(1)) <a href='javascript:alert(1)'>x</a>",
    '" onmouseover="alert(1)',
    "<!-- -->",
    "\x1b]0;title\x07\x1b[2J",
    "\u202egnp.exe\u2066",
    "\0\ud800",
    "```\n<script>\n```\n<script>alert(1)</script>",
    "- ```\n<script>alert(1)</script>",
    "> ```\n<script>alert(1)</script>",
    "  ```\n<script>alert(1)</script>",
    "```\n  ```\n<script>alert(1)</script>",
    "```\n````\n<script>alert(1)</script>",
    "~~~\n```\n~~~\n<script>alert(1)</script>",
    "```a`b\n<script>alert(1)</script>",
    "```\n \t```\n```\n<script>alert(1)</script>",
    "````\n```\n<b>\n```` x\n</b>\n````\n<script>alert(1)</script>",
    "~~~ a\n```\n~~~~\n<script>alert(1)</script>",
    "[a]: <javascript:alert(1)>\n\n[a]",
    "[a]:\n  javascript:alert(1)\n\n[a] [x][a]",
    "> [a\\]: x\n\n[b\\](javascript:alert(1)) [b\\\\](javascript:alert(1))",
    "[a](<javascript:alert(1)>) [a](\n javascript:alert(1)) [a](&#106;avascript:alert(1))",
    "[a](java\\script:alert(1)) [a](data:text/html,x) [a](//elsewhere.invalid) [a](/etc/passwd)",
    "![a](https://elsewhere.invalid/a.png) !\\[a](https://elsewhere.invalid/b.png)",
    "![a]\n\n[a]: https://elsewhere.invalid/c.png\n\n\\![a] ![x][a] ![a][]",
    "[![a](https://elsewhere.invalid/d.png)](https://elsewhere.invalid) <javascript:alert(1)>",
    "``` <script>\ncode\n```",
    "{title} {0} %s",
]

ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "time", "section"),
    *("div", "details", "summary", "pre"),
}


class Tags(HTMLParser):
    """Collects the tags of a page, with their attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def stored(kind: str, content: Any, **fields: Any) -> StoredMessage:
    made = entry("a", None, kind, **fields)
    made["message" if kind != "system" else "content"] = (
        {"role": kind, "content": content} if kind != "system" else content
    )
    return StoredMessage(entry_of(made), SESSION)


def everywhere(text: str) -> list[StoredMessage]:
    """Messages that have `text` in every place."""
    blocks = [
        {"type": "text", "text": text},
        {"type": "thinking", "thinking": text},
        {"type": "tool_use", "name": text, "input": {text: text}},
        {"type": "tool_result", "content": text},
        {"type": "tool_result", "content": [{"type": "text", "text": text}, {"type": text}]},
        {"type": "image", "source": {"media_type": text, "data": "eA=="}},
        {"type": text, text: [text]},
        text,
    ]
    return [
        stored("user", text, timestamp=text),
        stored("assistant", blocks),
        stored("system", text),
        stored(text, {"odd": text}),
    ]


def about(title: str) -> SessionInfo:
    return SessionInfo(session_id=SESSION, summary=title, last_modified=0)


@pytest.mark.parametrize("text", ATTACKS)
def test_a_page_has_no_tags_but_its_own(text: str) -> None:
    page = "".join(to_html(everywhere(text), about(text)))

    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.names == ALLOWED
    assert tags.attributes <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "dir"),
    }
    assert tags.open == []
    assert page.encode()


@pytest.mark.parametrize("text", ATTACKS)
def test_exports_have_no_control_or_direction_characters(text: str) -> None:
    for export in (to_html, to_markdown):
        made = "".join(export(everywhere(text), about(text)))

        assert [each for each in made if not each.isprintable() and each not in "\n\t"] == []


OWN = re.compile(r"<details>\n<summary>[^<\n]*</summary>\n|</details>\n?")


def found_in(markdown: str) -> tuple[list[str], list[str]]:
    """The HTML, and the addresses of links and images, as a reader of CommonMark finds them."""
    reader = MarkdownIt("commonmark", {"html": True})
    # It would leave out some of what others follow.
    reader.validateLink = lambda url: True  # type: ignore[method-assign]
    html, addresses = list[str](), list[str]()
    waiting = [*reader.parse(markdown)]
    while waiting:
        token = waiting.pop()
        waiting += token.children or ()
        if token.type in ("html_block", "html_inline"):
            html.append(token.content)
        addresses += [str(token.attrs[name]) for name in ("href", "src") if name in token.attrs]
        if token.type == "image":
            html.append("an image")
    return html, addresses


def assert_harmless(markdown: str) -> None:
    html, addresses = found_in(markdown)
    assert [each for each in html if not OWN.fullmatch(each)] == []
    assert [each for each in addresses if not each.startswith(("https://", "http://"))] == []


@pytest.mark.parametrize("text", ATTACKS)
def test_a_reader_of_commonmark_finds_no_tags_images_or_other_links(text: str) -> None:
    assert_harmless("".join(to_markdown(everywhere(text), about(text))))


PIECES = st.sampled_from(
    [
        *("```", "````", "~~~", "~~~~", "`", "    ", "\t", "   ", " ", "\n", "\n\n", "- ", "> "),
        *("<b>", "</b>", "<!--", "-->", "<", ">", "[", "]", "(", ")", "![", "](", "]:", ":"),
        *("javascript:x", "https://a.b/c", "//a.b", "&#106;", "&lt;", "a", '"', "'", "# ", "---"),
        *("\\", "!", "1. ", "js"),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_is_written_a_reader_of_commonmark_finds_nothing_else(text: str) -> None:
    blocks = [{"type": "text", "text": text}, {"type": "thinking", "thinking": text}]
    assert_harmless("".join(to_markdown([stored("user", text), stored("assistant", blocks)])))


def test_links_to_the_web_stay() -> None:
    text = "[a](https://a.invalid/x) and [b].\n\n[b]: http://b.invalid"

    html, addresses = found_in("".join(to_markdown([stored("user", text)])))

    assert html == []
    assert sorted(addresses) == ["http://b.invalid", "https://a.invalid/x"]


def test_a_page_has_a_title_and_shows_who_wrote_what_and_when() -> None:
    given = [
        stored("user", "a < b", timestamp="2026-01-01"),
        stored("assistant", [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]),
        stored("system", "note"),
        stored("user", "what was", isCompactSummary=True),
        stored("user", []),
    ]

    page = "".join(to_html(given, about("my & title")))

    assert "<title>my &amp; title</title>" in page
    assert "<h1>my &amp; title</h1>" in page
    assert "default-src 'none'" in page
    assert page.partition("</h1>\n")[2] == (
        "<section>\n<h2>User <time>2026-01-01</time></h2>\n"
        '<div class="text" dir="auto">a &lt; b</div>\n</section>\n'
        "<section>\n<h2>Assistant <time>2026-01-01T00:00:00.000Z</time></h2>\n"
        '<details class="call"><summary>Tool call: Bash</summary><pre dir="auto">'
        "{\n  &quot;command&quot;: &quot;ls&quot;\n}</pre></details>\n</section>\n"
        "<section>\n<h2>System <time>2026-01-01T00:00:00.000Z</time></h2>\n"
        '<div class="text" dir="auto">note</div>\n</section>\n'
        "<section>\n<h2>Summary of the conversation so far"
        " <time>2026-01-01T00:00:00.000Z</time></h2>\n"
        '<div class="text" dir="auto">what was</div>\n</section>\n'
        "</body>\n</html>\n"
    )


def test_parts_of_a_page_are_marked_by_what_they_are() -> None:
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "name": "Bash", "input": {}},
        {"type": "tool_result", "content": "out"},
        {"type": "new"},
    ]

    page = "".join(to_html([stored("assistant", content)]))

    kinds = [each.partition('"')[0] for each in page.split('<details class="')[1:]]
    assert kinds == ["thinking", "call", "result", "other"]


def test_images_are_named_and_unknown_blocks_are_shown_as_json() -> None:
    content = [
        {"type": "image", "source": {"media_type": "image/png", "data": "AAAA"}},
        {"type": "new", "x": 1},
        {"type": "tool_result", "content": [{"type": "text", "text": "one"}, {"type": "image"}]},
    ]

    markdown = "".join(to_markdown([stored("user", content), stored("user", {"y": 2})]))

    assert '<summary>content</summary>\n\n```json\n{\n  "y": 2\n}\n```' in markdown
    assert "<summary>image</summary>\n\n```\n[image, image/png, 4 characters]\n```" in markdown
    assert '<summary>new</summary>\n\n```json\n{\n  "type": "new",\n  "x": 1\n}\n```' in markdown
    assert '<summary>Tool result</summary>\n\n```\none\n{\n  "type": "image"\n}\n```' in markdown


def test_calls_and_results_are_folded_and_thinking_is_marked() -> None:
    content = [
        {"type": "thinking", "thinking": "let me see"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_result", "content": "```\nnot a fence\r\n", "is_error": True},
    ]

    markdown = "".join(to_markdown([stored("assistant", content)]))

    assert markdown == (
        "# Conversation\n\n---\n\n## Assistant\n"
        "\n<details>\n<summary>Thinking</summary>\n\n```\nlet me see\n```\n\n</details>\n"
        "\nI look.\n"
        "\n<details>\n<summary>Tool call: Bash</summary>\n\n"
        '```json\n{\n  "command": "ls"\n}\n```\n\n</details>\n'
        "\n<details>\n<summary>Tool result: error</summary>\n\n"
        "````\n```\nnot a fence\n\n````\n\n</details>\n"
    )


def test_code_in_markdown_stays_as_it_is() -> None:
    code = "Use\n```html\n<b>\n```\nand a<b."

    markdown = "".join(to_markdown([stored("assistant", code)]))

    assert "```html\n<b>\n```\nand a&lt;b." in markdown


def test_a_block_of_code_that_was_not_ended_is_ended() -> None:
    markdown = "".join(to_markdown([stored("user", "~~~~\ncode"), stored("user", "next")]))

    assert "~~~~\ncode\n~~~~\n\n---\n" in markdown


@pytest.mark.parametrize("text", ATTACKS)
def test_json_gives_back_what_was_stored(text: str) -> None:
    given = everywhere(text)

    found = json.loads("".join(to_json(given, about(text))))

    assert found["session"]["summary"] == text
    assert [each["message"] for each in found["messages"]] == [
        each.message or None for each in given
    ]
    assert found["messages"][2]["content"] == text


def test_an_empty_conversation_is_whole_in_every_format() -> None:
    assert json.loads("".join(to_json([]))) == {"session": None, "messages": []}
    assert "".join(to_html([])).endswith("</html>\n")
    assert "".join(to_markdown([])) == "# Conversation\n"


def test_a_conversation_is_exported_while_it_is_read() -> None:
    read = 0

    def endless() -> Iterator[StoredMessage]:
        nonlocal read
        while True:
            read += 1
            yield stored("user", "more")

    for export in (to_html, to_markdown, to_json):
        chunks = export(endless())
        read = 0
        for _ in range(9):
            next(chunks)
        assert read < 9


def test_a_conversation_of_the_cli_can_be_exported() -> None:
    source = lines_source(sample("conversation"))

    for export in (to_html, to_markdown, to_json):
        found = messages(source, session_id=SESSION, through_compaction=True, hidden=True)
        made = "".join(export(found))

        assert all(each in made for each in ("parallel please", "echo c", "hm hm", "I delegate"))
        assert "Session renamed to: my title" in made


DEEP: Any = "leaf"
for _ in range(900):
    DEEP = [DEEP]

CONTENT = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "input", "source"]), inner)
    ),
    max_leaves=8,
)


@given(CONTENT | st.just(DEEP))
def test_any_content_can_be_exported(content: Any) -> None:
    for export in (to_html, to_markdown, to_json):
        assert "".join(export([stored("user", content), stored("system", content)]))
