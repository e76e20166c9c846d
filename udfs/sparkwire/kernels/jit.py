"""The one decorator of the kernels: it owns the options of Numba, and the cache.

``SPARKWIRE_CHECKED=1`` in the environment (or ``NUMBA_BOUNDSCHECK=1``) gives the checked build: every
array access, raw load, store and copy outside of its array raises IndexError. It is for tests; it is
read at the first import.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba import types
from numba.core import config

from sparkwire.kernels.cache import PACKAGE, KernelCache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

CHECKED = os.environ.get("SPARKWIRE_CHECKED", "") not in ("", "0") or bool(config.BOUNDSCHECK)


@overload
def kernel(function: Kernel) -> Kernel: ...
@overload
def kernel(*, key: str) -> Callable[[Kernel], Kernel]: ...
def kernel(function: Kernel | None = None, *, key: str = "") -> Kernel | Callable[[Kernel], Kernel]:
    """Compile a loop over flat arrays at its first call, or load it from the cache.

    A kernel runs without the GIL, allocates nothing and does not raise: it reports by codes. A closure
    captures values that its source does not show, so it must name them by ``key``; without one it is a
    TypeError.
    """
    if function is None:
        return lambda inner: _compiled(inner, key)
    return _compiled(function, key)


def _compiled(function: Kernel, key: str) -> Kernel:
    if function.__closure__ and not key:
        raise TypeError(f"kernel {function.__qualname__} is a closure: name what it captures, kernel(key=...)")
    options = {
        "nogil": True,
        "error_model": "numpy",  # a division by zero has no business raising in a loop that must not raise
        "boundscheck": CHECKED,
        "no_cfunc_wrapper": True,  # nothing calls kernels from C
        "_nrt": False,  # no reference counts: each call of a helper costs two locked instructions an array
    }
    dispatcher = numba.njit(**options)(function)
    # What other kernels call has no wrapper for Python, which takes a quarter of the time that helpers take to compile.
    helper = numba.njit(**options, no_cpython_wrapper=True)(function)
    dispatcher.get_call_template = _by_type_alone(helper.get_call_template)
    dispatcher.get_overload = helper.get_overload
    if function.__module__.partition(".")[0] == PACKAGE:  # the cache vouches for these sources only
        dispatcher._cache = KernelCache(function, key=f"{key}:{CHECKED}")
        helper._cache = KernelCache(function, key=f"{key}:{CHECKED}:helper")
    compiled: Kernel = dispatcher
    return compiled


def _by_type_alone(call_template: Callable[..., Any]) -> Callable[..., Any]:
    """How one kernel is called from another: numba would compile it again for every constant that it is given."""

    def template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        named = {name: types.unliteral(arg) for name, arg in kws.items()}
        return call_template(tuple(types.unliteral(arg) for arg in args), named)

    return template
