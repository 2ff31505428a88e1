from __future__ import annotations

import os

import pytest

from steersman.transports.pipes import LOWEST, PipeEnd, pipe


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_an_end_closes_once() -> None:
    reader, writer = pipe()
    number = reader.number

    reader.close()
    other = os.dup(writer.number)
    reader.close()

    assert reader.number == -1
    assert not reader.is_open
    assert is_open(other)
    assert not is_open(number) or other == number
    os.close(other)


def test_an_end_without_references_is_closed() -> None:
    reader, writer = pipe()
    os.set_blocking(writer.number, False)

    del reader

    with pytest.raises(BrokenPipeError):
        os.write(writer.number, b"x")


def test_ends_do_not_use_the_standard_descriptors() -> None:
    ends = pipe()

    assert all(end.number >= LOWEST for end in ends)
    assert not any(os.get_inheritable(end.number) for end in ends)


def test_a_forked_copy_closes_the_ends_and_never_touches_them_again() -> None:
    reader, writer = pipe()
    number = writer.number
    pid = os.fork()
    if not pid:
        # A descriptor that reuses the number must stay open when the copy closes its end.
        was_closed = not is_open(number)
        os.dup2(0, number)
        writer.close()
        kept = is_open(number)
        fresh = PipeEnd(os.dup(0))
        is_usable = fresh.is_open
        os._exit(0 if was_closed and kept and is_usable and not reader.is_open else 1)

    _, status = os.waitpid(pid, 0)

    assert status == 0
    assert writer.is_open
    os.write(writer.number, b"x")
    assert os.read(reader.number, 1) == b"x"
