"""The decorator of all kernels, with Numba's options and the cache.

``SPARKWIRE_CHECKED=1`` in the environment (or ``NUMBA_BOUNDSCHECK=1``) selects the checked build: every array access, raw
load, store and copy outside its array raises IndexError. It is for tests. The variable is read at the first import.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba

from sparkwire.base.printable import printable, type_error
from sparkwire.kernels import numba_inside
from sparkwire.kernels.cache import PACKAGE, KernelCache
from sparkwire.kernels.numba_inside import go_without

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

CHECKED = os.environ.get("SPARKWIRE_CHECKED", "") not in ("", "0") or numba_inside.checks_bounds()


def _supported_options(**options: bool) -> dict[str, bool]:
    """The options that this Numba supports."""
    supported: dict[str, bool] = {}
    try:
        supported = numba_inside.supported_options(options)
        if len(supported) < len(options):
            raise LookupError(printable(f"no option {', '.join(options.keys() - supported.keys())}"))
    except Exception as error:  # noqa: BLE001  # Numba may have changed anything
        go_without("kernels compile slower", error)
    return supported


_PRIVATE = _supported_options(
    no_cfunc_wrapper=True,  # no C code calls kernels
    _nrt=False,  # no reference counts: they cost two locked instructions for each array in each call of a helper
)
_PRIVATE_OF_HELPERS = _PRIVATE | _supported_options(no_cpython_wrapper=True)
_MAY_BE_CACHED = "_nrt" in _PRIVATE  # code with reference counts must first be linked to Numba's runtime


@overload
def kernel(function: Kernel) -> Kernel: ...
@overload
def kernel(*, key: str) -> Callable[[Kernel], Kernel]: ...
def kernel(function: Kernel | None = None, *, key: str = "") -> Kernel | Callable[[Kernel], Kernel]:
    """Compile a loop over flat arrays at its first call, or load it from the cache.

    A kernel runs without the GIL, allocates no memory and does not raise; it reports errors as codes. A closure captures values
    that are not in its source, so it must pass a ``key`` that identifies them. A closure without a key raises TypeError.
    """
    if function is None:
        return lambda inner: _compiled(inner, key)
    return _compiled(function, key)


def _compiled(function: Kernel, key: str) -> Kernel:
    if function.__closure__ and not key:
        raise type_error(f"kernel {function.__qualname__} is a closure: name what it captures, kernel(key=...)")
    # A kernel must not raise, so a division by zero follows numpy's model.
    options = {"nogil": True, "error_model": "numpy", "boundscheck": CHECKED}
    dispatcher = numba.njit(**options, **_PRIVATE)(function)
    # Helpers that only kernels call get no Python wrapper, which would take a quarter of their compile time.
    helper = numba.njit(**options, **_PRIVATE_OF_HELPERS)(function)
    try:
        numba_inside.call_as(dispatcher, helper)
    except AttributeError as error:
        go_without("kernels are compiled for every constant that they are given", error)
    if function.__module__.partition(".")[0] == PACKAGE and _MAY_BE_CACHED:  # the cache tracks only these sources
        try:
            numba_inside.set_cache(dispatcher, KernelCache(function, key=f"{key}:{CHECKED}"))
            numba_inside.set_cache(helper, KernelCache(function, key=f"{key}:{CHECKED}:helper"))
        except AttributeError as error:
            go_without("kernels are not cached", error)
    compiled: Kernel = dispatcher
    return compiled
