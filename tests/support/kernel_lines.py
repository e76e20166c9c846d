"""A plugin of pytest for `make coverage`: which lines the tests run, those of kernels too.

Coverage sees what Python runs, and a kernel runs as machine code. Here every statement of a kernel first sets a byte of its
own. The bytes are read when the tests end. The rewritten kernels stay out of the compile cache, so set
``SPARKWIRE_KERNEL_CACHE=off``. Set ``SPARKWIRE_CHECKED=1``, too: the bounds of every access are then checked.
"""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
import types
from collections.abc import Callable
from typing import Any, Final

import coverage
import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from tests.support import ROOT

_DATA: Final = ROOT / "build" / "coverage" / "data"
_PACKAGE: Final = "sparkwire"
_MARK: Final = "_line_runs_"
_MOST: Final = 1 << 16  # statements

_RUN: Final = np.zeros(_MOST, np.uint8)
_LINES: Final[list[tuple[str, int]]] = []
"""file and line of each statement that sets a byte"""


@intrinsic  # type: ignore[untyped-decorator]
def _mark(typing_context: Any, number: Any) -> Any:
    """Set the byte of a statement."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = builder.add(ir.Constant(ir.IntType(64), _RUN.ctypes.data), args[0])
        builder.store(ir.Constant(ir.IntType(8), 1), builder.inttoptr(at, ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return numba.types.void(numba.types.int64), emit


def marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, where each statement first notes that it runs."""
    source, first = inspect.getsourcelines(function)
    [definition] = ast.parse(textwrap.dedent("".join(source))).body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    ast.increment_lineno(definition, first - 1)
    file = inspect.getfile(function)
    _mark_statements(definition, file)
    names = function.__code__.co_freevars
    maker = ast.parse(f"def maker({', '.join(names)}): pass")
    maker.body[0].body = [definition]  # type: ignore[attr-defined]
    ast.fix_missing_locations(maker)
    [outer] = [code for code in compile(maker, file, "exec").co_consts if isinstance(code, types.CodeType)]
    [code] = [code for code in outer.co_consts if isinstance(code, types.CodeType)]
    cells = dict(zip(names, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    function.__globals__[_MARK] = _mark
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__module__, result.__qualname__ = function.__module__, function.__qualname__
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def _mark_statements(node: ast.AST, file: str) -> None:
    for name in ("body", "orelse"):
        statements = getattr(node, name, None)
        if not isinstance(statements, list):
            continue
        result: list[ast.stmt] = []
        for statement in statements:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                mark = ast.parse(f"{_MARK}({len(_LINES)})").body[0]
                result.append(ast.copy_location(mark, statement))
                ast.fix_missing_locations(mark)
                _LINES.append((file, statement.lineno))
            result.append(statement)
            _mark_statements(statement, file)
        setattr(node, name, result)


def executed() -> dict[str, set[int]]:
    """The lines of kernels that have run, by file."""
    result: dict[str, set[int]] = {}
    for number in np.flatnonzero(_RUN).tolist():
        file, line = _LINES[number]
        result.setdefault(file, set()).add(line)
    return result


def install() -> None:
    """From now on, Numba gets kernels with marks."""
    njit, known = numba.njit, dict[Any, Any]()

    def marking(*given: Any, **options: Any) -> Any:
        compiled = njit(*given, **options)
        if given:
            return compiled

        def decorate(function: Any) -> Any:
            if function.__module__.partition(".")[0] != _PACKAGE:
                return compiled(function)
            if function not in known:  # a kernel is given twice: for Python, and for other kernels
                known[function] = marked(function)
            return compiled(known[function])

        return decorate

    numba.njit = marking


_COVERAGE: Final = coverage.Coverage(data_suffix=f"python-{os.getpid()}")  # what it counts is said in pyproject.toml


def pytest_load_initial_conftests() -> None:
    """Before anything imports the package."""
    _DATA.parent.mkdir(parents=True, exist_ok=True)
    install()
    _COVERAGE.start()


def pytest_sessionfinish() -> None:
    _COVERAGE.stop()
    _COVERAGE.save()
    kernels = coverage.CoverageData(str(_DATA), suffix=f"kernels-{os.getpid()}")
    kernels.add_lines(executed())
    kernels.write()
