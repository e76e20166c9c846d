"""Names that go: each works for one more release, and warns at every line that still uses it, once."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

GONE: Final = "0.3"
"""the release without the names replaced now"""

P = ParamSpec("P")
R = TypeVar("R")


def replaced(name: str, replacement: str, function: Callable[P, R]) -> Callable[P, R]:
    """``function`` under its old ``name``, with a warning that says what to write."""

    @functools.wraps(function)
    def deprecated(*args: P.args, **kwargs: P.kwargs) -> R:
        warn(f"{name} goes in sparkwire {GONE}: use {replacement}")
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = name.rpartition(".")[2]
    return deprecated


def arguments(by_position: int, *by_keyword: str, **renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Of a function whose arguments after ``by_position`` are given by keyword now: the names of those that once came after them.

    ``renamed``: arguments that had other names, by the old ones.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def taking(*args: P.args, **kwargs: P.kwargs) -> R:
            given = args[:by_position]
            named = dict(zip(by_keyword, args[by_position:], strict=False))
            if len(args) > by_position + len(named) or named.keys() & kwargs.keys():
                return function(*args, **kwargs)  # which raises Python's own error
            for name in named:
                warn(f"{function.__name__} takes {name} by keyword from sparkwire {GONE} on: {name}=…")
            for name in renamed.keys() & kwargs.keys():
                warn(f"{function.__name__}({name}=…) goes in sparkwire {GONE}: use {renamed[name]}=…")
            return function(*given, **named, **{renamed.get(name, name): value for name, value in kwargs.items()})  # type: ignore[arg-type]

        return taking

    return decorate


def warn(text: str, stacklevel: int = 3) -> None:
    """The warning that Python shows to people who run programs, not only to who writes them; once for each line that calls."""
    warnings.warn(text, FutureWarning, stacklevel=stacklevel)
