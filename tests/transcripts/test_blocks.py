"""Lines of a source, forwards and backwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman.transcripts import Line, lines_backward, lines_forward, lines_source

CONTENTS = st.lists(
    st.sampled_from([b"\n", b"\n", b"a", b"bc", b"\0", b"\xff", b"x" * 40]), max_size=30
)


class Bytes:
    """A source of bytes that may change between two reads."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


def expected(data: bytes) -> list[Line]:
    lines, at = list[Line](), 0
    for part in data.split(b"\n"):
        is_ended = at + len(part) < len(data)
        if part or is_ended:
            lines.append(Line(at, part, is_ended))
        at += len(part) + 1
    return lines


@given(CONTENTS, st.integers(1, 50))
def test_lines_are_the_same_in_both_directions_and_in_blocks_of_any_size(
    parts: list[bytes], block: int
) -> None:
    data = b"".join(parts)

    assert list(lines_forward(Bytes(data), block=block)) == expected(data)
    assert list(lines_backward(Bytes(data), block=block)) == expected(data)[::-1]


@given(
    st.lists(st.binary(max_size=5).filter(lambda each: b"\n" not in each), max_size=9), st.data()
)
def test_lines_in_memory_can_be_read_at_any_offset(lines: list[bytes], draw: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    source = lines_source(lines)
    offset, size = draw.draw(st.integers(0, 60)), draw.draw(st.integers(0, 60))

    assert source.size == len(whole)
    assert source.read(offset, size) == whole[offset : offset + size]


def test_a_line_of_many_blocks_is_read_once() -> None:
    class Counted(Bytes):
        count = 0

        def read(self, offset: int, size: int) -> bytes:
            self.count += size
            return super().read(offset, size)

    line = b"x" * (5 << 20)
    source = Counted(b"first\n" + line + b"\nlast")

    found = [each.data for each in lines_backward(source)]

    assert found == [b"last", line, b"first"]
    assert source.count == source.size


@given(CONTENTS, CONTENTS, st.integers(1, 9), st.integers(0, 9))
def test_a_source_that_is_replaced_while_it_is_read_comes_to_an_end(
    before: list[bytes], after: list[bytes], block: int, reads: int
) -> None:
    class Replaced(Bytes):
        left = reads

        def read(self, offset: int, size: int) -> bytes:
            self.left -= 1
            if self.left < 0:
                self.data = b"".join(after)
            return super().read(offset, size)

    forward, backward = Replaced(b"".join(before)), Replaced(b"".join(before))
    bound = len(b"".join((*before, *after))) + 2

    assert len(list(lines_forward(forward, block=block))) <= bound
    assert len(list(lines_backward(backward, block=block))) <= bound


def test_a_source_that_shrank_gives_the_lines_that_are_left() -> None:
    source = Bytes(b"one\ntwo\nthree\n")
    source.data = b"one\ntwo\nth"

    assert [each.data for each in lines_backward(source)] == [b"th", b"two", b"one"]
