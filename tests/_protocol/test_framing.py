from __future__ import annotations

import itertools
import tracemalloc
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from steersman._protocol.framing import DEFAULT_LIMIT, HEAD, LineFramer, Oversize
from tests.samples.strategies import chunks

LINES = st.lists(st.binary(min_size=1, max_size=30).filter(lambda line: not line.isspace()))
CHUNK = 64 * 1024


def clean(line: bytes) -> bytes:
    return line.replace(b"\n", b"?").replace(b"\r", b"?")


def read(framer: LineFramer, pieces: list[bytes]) -> list[bytes | Oversize]:
    return [*itertools.chain.from_iterable(map(framer.feed, pieces)), *framer.finish()]


class Counted(bytes):
    """Counts the bytes that are looked at or copied, however the framer goes about it."""

    work: ClassVar[int] = 0

    def _count(self, *others: Any) -> None:
        Counted.work += len(self) + sum(len(each) for each in others if isinstance(each, bytes))

    def partition(self, sep: Any, /) -> tuple[bytes, bytes, bytes]:
        self._count()
        head, newline, rest = super().partition(sep)
        return Counted(head), newline, Counted(rest)

    def split(self, *args: Any, **kwargs: Any) -> list[bytes]:
        self._count()
        return [Counted(each) for each in super().split(*args, **kwargs)]

    def find(self, *args: Any) -> int:
        self._count()
        return super().find(*args)

    def __contains__(self, key: Any, /) -> bool:
        self._count()
        return super().__contains__(key)

    def __add__(self, other: Any, /) -> bytes:
        self._count(other)
        return Counted(super().__add__(other))

    def __radd__(self, other: bytes) -> bytes:
        self._count(other)
        return Counted(bytes(other) + bytes(self))

    def __getitem__(self, key: Any, /) -> Any:
        found = super().__getitem__(key)
        if isinstance(found, bytes):
            Counted.work += len(found)
            return Counted(found)
        return found


def work_for(size: int) -> int:
    """How many bytes are touched until a line of `size` bytes is there, its one join left out."""
    framer, chunk, end = LineFramer(), Counted(b"x" * CHUNK), Counted(b"\n")
    Counted.work = 0
    for _ in range(size // CHUNK):
        framer.feed(chunk)
    (line,) = framer.feed(end)
    assert isinstance(line, bytes)
    assert len(line) == size
    return Counted.work


@given(lines=LINES, data=st.data())
def test_lines_survive_any_chunking(lines: list[bytes], data: st.DataObject) -> None:
    wanted = [clean(line) for line in lines]
    pieces = data.draw(chunks(b"".join(line + b"\n" for line in wanted)))

    seen = read(LineFramer(), pieces)

    assert seen == wanted


@given(lines=LINES, data=st.data())
def test_carriage_returns_at_line_ends_are_no_part_of_the_lines(
    lines: list[bytes], data: st.DataObject
) -> None:
    wanted = [clean(line) for line in lines]
    pieces = data.draw(chunks(b"".join(line + b"\r\n" for line in wanted)))

    seen = read(LineFramer(), pieces)

    assert seen == wanted


def test_a_carriage_return_inside_a_line_stays() -> None:
    assert read(LineFramer(), [b"a\rb\r\n"]) == [b"a\rb"]


def test_blank_lines_are_left_out() -> None:
    assert read(LineFramer(), [b"\n\r\n  \n\t\na\n\n"]) == [b"a"]


def test_the_last_line_counts_although_its_end_never_came() -> None:
    framer = LineFramer()

    assert framer.feed(b"a\nb") == [b"a"]
    assert framer.finish() == [b"b"]
    assert framer.finish() == []


def test_only_a_newline_ends_a_line() -> None:
    line = "a\u2028b\u2029c\u0085d\x0be\x0cf".encode()

    assert read(LineFramer(), [line + b"\n"]) == [line]


@given(
    sizes=st.lists(st.integers(1, 40), max_size=12),
    limit=st.integers(1, 20),
    data=st.data(),
)
def test_a_line_over_the_limit_costs_that_line_only(
    sizes: list[int], limit: int, data: st.DataObject
) -> None:
    lines = [bytes([97 + number % 26]) * size for number, size in enumerate(sizes)]
    pieces = data.draw(chunks(b"".join(line + b"\n" for line in lines)))

    seen = read(LineFramer(limit), pieces)

    fate = [found if isinstance(found, bytes) else found.size for found in seen]
    assert fate == [line if len(line) <= limit else len(line) for line in lines]
    heads = [
        (found.head, line)
        for found, line in zip(seen, lines, strict=True)
        if isinstance(found, Oversize)
    ]
    assert all(head and line.startswith(head) for head, line in heads)


def test_a_line_of_just_the_limit_is_read_in_one_chunk_or_in_many() -> None:
    assert read(LineFramer(5), [b"12345\n12345\n1", b"234", b"5\n"]) == [b"12345"] * 3


def test_an_oversize_line_that_never_ends_is_told_at_the_end() -> None:
    framer = LineFramer(4)

    assert framer.feed(b"123456") == []
    assert framer.finish() == [Oversize(6, b"123456")]


def test_the_head_of_an_oversize_line_is_short() -> None:
    framer = LineFramer(1000)

    seen = read(framer, [b"x" * 400, b"y" * 700, b"z\n"])

    assert seen == [Oversize(1101, b"x" * HEAD)]


def test_the_head_is_put_together_from_small_chunks() -> None:
    framer = LineFramer(10)

    seen = read(framer, [b"%d" % digit for digit in range(10)] * 2 + [b"\n"])

    assert seen == [Oversize(20, b"01234567890")]


def test_a_line_of_64_mb_is_collected_in_linear_work() -> None:
    half, whole = work_for(32 * 1024 * 1024), work_for(64 * 1024 * 1024)

    assert whole <= 2.1 * half
    assert whole <= 3 * 64 * 1024 * 1024


def test_a_line_of_300_mb_costs_that_line_and_no_memory_of_its_size() -> None:
    framer, chunk = LineFramer(), b"x" * CHUNK
    times = 300 * 1024 * 1024 // CHUNK
    tracemalloc.start()

    quiet = [framer.feed(chunk) for _ in range(times)]
    told = framer.feed(b"\nnext\n")
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert not any(quiet)
    assert told == [Oversize(times * CHUNK, chunk[:HEAD]), b"next"]
    assert times * CHUNK > DEFAULT_LIMIT
    assert peak < 4 * 1024 * 1024
