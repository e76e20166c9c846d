"""A cache for what a worker parses from texts in data, such as schemas and declarations. It has a bound in bytes.

A worker lives long, and data may have any number of texts of any size. What a program makes of a text is several times as large.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from functools import update_wrapper
from threading import Lock
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

MOST_BYTES: Final = 4 << 20
"""bound for the texts of one cache [bytes]"""
_NONE: Final = object()


def size_of(value: Any) -> int:
    """The size of an argument, with the items of a tuple [bytes]."""
    return sys.getsizeof(value) + (sum(map(size_of, value)) if isinstance(value, tuple) else 0)


class TextCache(Generic[P, Result]):
    """Keeps the results of a function of hashable positional arguments. The oldest results go first, the newest one stays."""

    def __init__(self, function: Callable[P, Result], most: int, most_bytes: int, size: Callable[..., int]) -> None:
        self.most = most
        """bound for the number of results"""
        self.most_bytes = most_bytes
        self.bytes = 0
        """size of the arguments of the results [bytes]"""
        self._function = function
        self._size = size
        self._results: dict[Hashable, Result] = {}
        self._lock = Lock()
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Result:
        key = (arguments, tuple(named.items())) if named else arguments
        result: Any = self._results.get(key, _NONE)
        return self._remember(key, self._function(*arguments, **named)) if result is _NONE else result

    def __len__(self) -> int:
        return len(self._results)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle a cache of a module by its name, as the function itself. Any other one goes without its results and its lock."""
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", "")
        if module and getattr(sys.modules.get(module), name, None) is self:
            return name
        return TextCache, (self._function, self.most, self.most_bytes, self._size)

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self._results.clear()
            self.bytes = 0

    def _remember(self, key: Any, result: Result) -> Result:
        with self._lock:
            if key not in self._results:
                self._results[key] = result
                self.bytes += self._size(key)
                while len(self._results) > 1 and (self.bytes > self.most_bytes or len(self._results) > self.most):
                    oldest = next(iter(self._results))
                    del self._results[oldest]
                    self.bytes -= self._size(oldest)
        return result


def text_cache(
    most: int, most_bytes: int = MOST_BYTES, size: Callable[..., int] = size_of
) -> Callable[[Callable[P, Result]], TextCache[P, Result]]:
    """Decorate a function of texts with a cache of at most ``most`` results, whose texts have at most ``most_bytes``.

    ``size`` gives the size of a tuple of arguments, by default their own.
    """
    return lambda function: TextCache(function, most, most_bytes, size)
