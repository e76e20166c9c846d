"""Deprecated names: each works for one more release, and warns once for each line that uses it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

REMOVED_IN: Final = "0.3"
"""the release that removes the names deprecated now"""

P = ParamSpec("P")
R = TypeVar("R")


def replaced(name: str, replacement: str, function: Callable[P, R]) -> Callable[P, R]:
    """``function`` under its old ``name``, with a warning that states the replacement."""

    @functools.wraps(function)
    def deprecated(*args: P.args, **kwargs: P.kwargs) -> R:
        warn(f"{name} is deprecated and will be removed in sparkwire {REMOVED_IN}: use {replacement}")
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = name.rpartition(".")[2]
    return deprecated


def arguments(by_position: int, *by_keyword: str, **renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose positional or renamed arguments are deprecated.

    Parameters
    ----------
    by_position
        how many arguments stay positional
    by_keyword
        the names of the arguments after these, which callers must now pass by keyword
    renamed
        new names of arguments, by their old names
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def deprecated(*args: P.args, **kwargs: P.kwargs) -> R:
            given = args[:by_position]
            named = dict(zip(by_keyword, args[by_position:], strict=False))
            if len(args) > by_position + len(named) or named.keys() & kwargs.keys():
                return function(*args, **kwargs)  # raises Python's own error
            for name in named:
                warn(
                    f"{function.__name__}() will accept {name} only by keyword from sparkwire {REMOVED_IN} on: use {name}=…"
                )
            for name in renamed.keys() & kwargs.keys():
                warn(
                    f"{function.__name__}({name}=…) is deprecated and will be removed in sparkwire {REMOVED_IN}: "
                    f"use {renamed[name]}=…"
                )
            return function(*given, **named, **{renamed.get(name, name): value for name, value in kwargs.items()})  # type: ignore[arg-type]

        return deprecated

    return decorate


def warn(text: str, stacklevel: int = 3) -> None:
    """Issue a FutureWarning, which Python also shows to users of programs, once for each calling line."""
    warnings.warn(text, FutureWarning, stacklevel=stacklevel)
