"""All that sparkwire uses of Numba's internals, which any release may change.

Every function raises whatever Numba makes of it. Callers continue without: kernels compile in place of being loaded, are
compiled more often, or use plainer instructions. ``go_without`` reports that once, in one line of the log.
"""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numba

HAPPENED = Counter[str]()
"""how many kernels this process has loaded ready and from the cache, and how many it has compiled"""
CHANGED = list[str]()
"""what this process goes without; the first is in the log"""

_LOG = logging.getLogger(__name__)


def go_without(what: str, error: Exception) -> None:
    """Note what no longer works as it did; the first time in the log, in one line."""
    reason = " ".join(str(error).split())
    CHANGED.append(f"{what} with Numba {numba.__version__}: {type(error).__name__}: {reason}")
    if len(CHANGED) == 1:
        _LOG.warning(
            "%s. Results stay right; install a Numba that sparkwire supports, or set SPARKWIRE_KERNEL_CACHE=off",
            CHANGED[0],
        )


def target() -> tuple[str, str, str]:
    """What Numba compiles for: LLVM's triple, processor and features."""
    from numba.core.registry import cpu_target

    triple, processor, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, processor, features


def optimisation() -> str:
    """The level of optimisation."""
    return repr(numba.config.OPT)


def cache_directory() -> str:
    """The setting NUMBA_CACHE_DIR."""
    return str(numba.config.CACHE_DIR)


def checks_bounds() -> bool:
    """The setting NUMBA_BOUNDSCHECK."""
    return bool(getattr(numba.config, "BOUNDSCHECK", False))


def machine_code(result: Any) -> bytes | None:
    """A compile result as bytes that another process can load; None where it holds addresses of this one."""
    from numba.core import serialize
    from numba.core.caching import CompileResultCacheImpl

    if result.lifted or result.library.has_dynamic_globals:
        return None
    # The only text among its parts is what types numba has inferred: for reading alone, and full of addresses.
    parts = ("" if isinstance(part, str) else part for part in CompileResultCacheImpl.reduce(None, result))
    return bytes(serialize.dumps(tuple(parts)))


def loaded(content: bytes, argument_types: tuple[Any, ...], target_context: Any) -> Any:
    """The compile result out of ``machine_code``; a TypeError where it is for other arguments."""
    from numba.core.caching import CompileResultCacheImpl

    result = CompileResultCacheImpl.rebuild(None, target_context, pickle.loads(content))
    if tuple(result.signature.args) != tuple(argument_types):
        raise TypeError(f"a kernel of {argument_types} came back as one of {result.signature.args}")
    return result


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the compiler's options that this Numba knows."""
    from numba.core.cpu import CPUTargetOptions

    return {name: value for name, value in options.items() if hasattr(CPUTargetOptions, name)}


def call_as(dispatcher: Any, helper: Any) -> None:
    """Let kernels that call ``dispatcher`` call ``helper``, which is compiled once for all constants that it is given."""
    template, overload = helper.get_call_template, helper.get_overload

    def by_type_alone(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        named = {name: _unliteral(arg) for name, arg in kws.items()}
        return template(tuple(_unliteral(arg) for arg in args), named)

    dispatcher.get_call_template, dispatcher.get_overload = by_type_alone, overload


def _unliteral(argument: Any) -> Any:
    """The type of a constant; the constant's own where Numba no longer tells."""
    plain: Callable[[Any], Any] | None = getattr(numba.types, "unliteral", None)
    return plain(argument) if plain else argument


def set_cache(dispatcher: Any, cache: Any) -> None:
    """Let a dispatcher ask ``cache``, which passes to the dispatcher's own what it does not have."""
    cache.own = dispatcher._cache
    dispatcher._cache = cache
