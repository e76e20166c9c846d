"""If Numba changes a name that the cache uses, kernels are compiled, results stay correct, and the log has one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkwire.kernels.cache import KernelCache
from tests.kernels.test_jit_cache import CALL, House, without_announcement

pytestmark = pytest.mark.process

# Changes to Numba before the package is imported, by the name that they break.
BREAKS = {
    "CompileResultCacheImpl.reduce raises": "del caching.CompileResultCacheImpl.reduce",
    "CompileResultCacheImpl.reduce has one parameter": "caching.CompileResultCacheImpl.reduce = lambda one: ()",
    "CompileResultCacheImpl.reduce returns nothing": "caching.CompileResultCacheImpl.reduce = lambda self, cres: None",
    "CompileResultCacheImpl is gone": "del caching.CompileResultCacheImpl",
    "serialize.dumps is gone": "pythonapi.serialize = SimpleNamespace(**vars(serialize)); del serialize.dumps",
    "CodeLibrary.has_dynamic_globals is gone": "del codegen.CPUCodeLibrary.__mro__[1].has_dynamic_globals",
    "CompileResult.lifted raises": "compiler.CompileResult.lifted = property(lambda self: 1 // 0)",
    "magic_tuple is gone": "del codegen.CPUCodegen.magic_tuple",
    "config.CACHE_DIR is gone": "vars(numba.config).pop('CACHE_DIR')",
    "CPUTargetOptions is gone": "del cpu.CPUTargetOptions",
    "the option _nrt is gone": "del options.DefaultOptions._nrt, cpu.CPUTargetOptions.__mro__[1]._nrt",
    "the option no_cfunc_wrapper is gone": "del cpu.CPUTargetOptions.__mro__[1].no_cfunc_wrapper",
    "the option no_cpython_wrapper is gone": "del cpu.CPUTargetOptions.__mro__[1].no_cpython_wrapper",
    "Dispatcher._cache is gone": (
        "dispatcher.Dispatcher._cache = property(lambda self: self.__dict__['_kept'], "
        "lambda self, cache: self.__dict__.__setitem__('_kept', caching.NullCache()) "
        "if isinstance(cache, caching.NullCache) else object().gone)"
    ),
    "Dispatcher.get_call_template is gone": (
        "base = dispatcher._DispatcherBase; base.template = base.get_call_template; "
        "types.Dispatcher.get_call_type = "
        "lambda self, context, args, kws: self.dispatcher.template(args, kws)[0](context).apply(args, kws); "
        "del base.get_call_template"
    ),
}
# These can only be broken between a process that saves and one that loads.
BREAKS_OF_LOADING = {
    "CompileResultCacheImpl.rebuild is gone": "del caching.CompileResultCacheImpl.rebuild",
    "CompileResultCacheImpl.rebuild has one parameter": "caching.CompileResultCacheImpl.rebuild = lambda one: one",
    "CompileResultCacheImpl.rebuild returns something else": "caching.CompileResultCacheImpl.rebuild = lambda *given: given",
    "CompileResult.signature is gone": (
        "rebuild = caching.CompileResultCacheImpl.rebuild; "
        "caching.CompileResultCacheImpl.rebuild = lambda *given: SimpleNamespace(entry_point=rebuild(*given).entry_point)"
    ),
}
IMPORTS = """
import numba
from numba import types
from numba.core import caching, codegen, compiler, cpu, dispatcher, options, pythonapi, serialize
from types import SimpleNamespace
"""


def called(house: House, breaks: str) -> tuple[list[int], list[str]]:
    """The output of a child process, and the lines of its log."""
    output, log = house.start(f"{IMPORTS}\n{breaks}\n{CALL}").communicate(timeout=60)
    return json.loads(output or "[]"), without_announcement(log).splitlines()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize("name", BREAKS)
def test_kernels_compile(house: House, name: str) -> None:
    printed, log = called(house, BREAKS[name])
    assert printed[:1] == [100], log
    assert len(log) == 1
    assert "with Numba" in log[0]


@pytest.mark.parametrize("name", BREAKS_OF_LOADING)
def test_kernels_compile_again(house: House, name: str) -> None:
    assert house.run() == [[100, 0]]
    printed, log = called(house, BREAKS_OF_LOADING[name])
    assert (printed, len(log)) == ([100, 0], 1), log
    assert house.run() == [[100, 1]]


def test_a_dispatcher_with_another_signature(caplog: pytest.LogCaptureFixture) -> None:
    cache = KernelCache(test_kernels_compile, "")
    assert cache.load_overload() is None
    assert cache.load_overload((), None, flags=1) is None
    cache.save_overload("more", "than", "was", "given")
    cache.original = {"something": "new"}
    assert cache.get("something") == "new"
    assert len(caplog.records) <= 1


def test_off_reads_and_writes_nothing(house: House) -> None:
    assert house.run(SPARKWIRE_KERNEL_CACHE="off") == [[100, 0]]
    assert house.files() == []
    assert house.run() == [[100, 0]]
    assert house.run(SPARKWIRE_KERNEL_CACHE="OFF") == [[100, 0]]
    assert house.run(SPARKWIRE_KERNEL_CACHE="on") == [[100, 1]]


def test_every_private_name_is_broken() -> None:
    """One module names all of Numba's internals, and each of them is broken above."""
    kernels = Path(__file__).parents[2] / "udfs" / "sparkwire" / "kernels"
    users = {path.name for path in kernels.rglob("*.py") if "numba.core.caching" in path.read_text("utf-8")}
    assert users == {"numba_inside.py"}
