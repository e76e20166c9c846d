"""All Numba internals that sparkwire uses. Any Numba release may change them.

Every function passes on Numba's exceptions. Callers then continue without the feature: kernels are compiled instead of
loaded, compiled more often, or use simpler instructions. ``go_without`` reports that once, in one line of the log.
"""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numba

from sparkwire.base.printable import printable, type_error

HAPPENED = Counter[str]()
"""the number of kernels that this process loaded ready, loaded from the cache, and compiled"""
CHANGED = list[str]()
"""the features that this process does without; the first one is in the log"""

_LOG = logging.getLogger(__name__)


def go_without(what: str, error: Exception) -> None:
    """Record a feature that no longer works. The first call also writes one line to the log."""
    reason = " ".join(str(error).split())
    CHANGED.append(f"{what} with Numba {numba.__version__}: {type(error).__name__}: {reason}")
    if len(CHANGED) == 1:
        _LOG.warning(
            "%s. Results stay right; install a Numba that sparkwire supports, or set SPARKWIRE_KERNEL_CACHE=off",
            printable(CHANGED[0]),
        )


def target() -> tuple[str, str, str]:
    """Numba's target: LLVM's triple, processor and features."""
    from numba.core.registry import cpu_target

    triple, processor, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, processor, features


def optimisation() -> str:
    """The optimisation level."""
    return repr(numba.config.OPT)


def cache_directory() -> str:
    """The setting NUMBA_CACHE_DIR."""
    return str(numba.config.CACHE_DIR)


def checks_bounds() -> bool:
    """The setting NUMBA_BOUNDSCHECK."""
    return bool(getattr(numba.config, "BOUNDSCHECK", False))


def machine_code(result: Any) -> bytes | None:
    """A compile result as bytes that another process can load; None if it contains addresses of this process."""
    from numba.core import serialize
    from numba.core.caching import CompileResultCacheImpl

    if result.lifted or result.library.has_dynamic_globals:
        return None
    # Drop the only text among its parts: Numba's annotation of inferred types, which is full of addresses.
    parts = ("" if isinstance(part, str) else part for part in CompileResultCacheImpl.reduce(None, result))
    return bytes(serialize.dumps(tuple(parts)))


def loaded(content: bytes, argument_types: tuple[Any, ...], target_context: Any) -> Any:
    """The compile result from ``machine_code``. Raises TypeError if it is for other arguments."""
    from numba.core.caching import CompileResultCacheImpl

    result = CompileResultCacheImpl.rebuild(None, target_context, pickle.loads(content))
    if tuple(result.signature.args) != tuple(argument_types):
        raise type_error(f"a kernel of {argument_types} came back as one of {result.signature.args}")
    return result


def supported_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The compiler options that this Numba supports."""
    from numba.core.cpu import CPUTargetOptions

    return {name: value for name, value in options.items() if hasattr(CPUTargetOptions, name)}


def call_as(dispatcher: Any, helper: Any) -> None:
    """Redirect calls of ``dispatcher`` in kernels to ``helper``, which is compiled only once for all constant arguments."""
    template, overload = helper.get_call_template, helper.get_overload

    def by_type_alone(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        named = {name: _unliteral(arg) for name, arg in kws.items()}
        return template(tuple(_unliteral(arg) for arg in args), named)

    dispatcher.get_call_template, dispatcher.get_overload = by_type_alone, overload


def _unliteral(argument: Any) -> Any:
    """The general type of a constant; its literal type if Numba no longer provides the general one."""
    plain: Callable[[Any], Any] | None = getattr(numba.types, "unliteral", None)
    return plain(argument) if plain else argument


def set_cache(dispatcher: Any, cache: Any) -> None:
    """Make a dispatcher use ``cache``, which delegates other methods to the dispatcher's original cache."""
    cache.original = dispatcher._cache
    dispatcher._cache = cache
