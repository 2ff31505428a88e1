from __future__ import annotations

import pytest

from steersman.tools._schema.docstrings import Docstring, read_docstring

GOOGLE = """Move a file.

    Overwrites nothing.

    Args:
        source (str): where it is,
            as a path
        target: where it goes: a directory

    Returns:
        the new path

    Raises:
        OSError: if it cannot

    Note:
        Links are followed.
    """

NUMPY = """Move a file.

    Overwrites nothing.

    Parameters
    ----------
    source : str
        where it is,
        as a path
    target, fallback
        where it goes

    Returns
    -------
    str
        the new path
    """

SPHINX = """Move a file.

    Overwrites nothing.

    :param source: where it is,
        as a path
    :param str target: where it goes
    :type source: str
    :returns: the new path
    """


def test_google_sections_describe_the_parameters() -> None:
    read = read_docstring(GOOGLE)

    assert read.parameters == {
        "source": "where it is, as a path",
        "target": "where it goes: a directory",
    }
    assert read.description == (
        "Move a file.\n\nOverwrites nothing.\n\nNote:\n    Links are followed."
    )


def test_numpy_sections_describe_the_parameters() -> None:
    assert read_docstring(NUMPY) == Docstring(
        "Move a file.\n\nOverwrites nothing.",
        {
            "source": "where it is, as a path",
            "target": "where it goes",
            "fallback": "where it goes",
        },
    )


def test_sphinx_fields_describe_the_parameters() -> None:
    assert read_docstring(SPHINX) == Docstring(
        "Move a file.\n\nOverwrites nothing.",
        {"source": "where it is, as a path", "target": "where it goes"},
    )


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_describes_nothing(text: str | None) -> None:
    assert read_docstring(text) == Docstring("")


def test_a_colon_in_prose_starts_no_section() -> None:
    text = "Go.\n\nDo this:\n    first: a\n    second"

    assert read_docstring(text) == Docstring(text)


def test_a_section_without_an_indented_line_is_empty() -> None:
    read = read_docstring("Go.\n\nArgs:\nNot indented: x\n    below: y")

    assert read == Docstring("Go.\n\nNot indented: x\n    below: y")
