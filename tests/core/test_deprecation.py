"""Deprecated names still work and state their replacement: in Python, in the catalogue, on the pages."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.base.deprecation import arguments
from sparkwire.catalogue import FORMATS
from tools.pages import functions as page

OLD = replace(FUNCTIONS["kafka_magic"], deprecated="0.2.0", replaced_by="kafka_message(message).magic")


@arguments(1, "b", "c", old_d="d")
def called(a: int, *, b: int = 0, c: int = 0, d: int = 0) -> tuple[int, ...]:
    return a, b, c, d


@pytest.mark.parametrize(
    ("args", "named", "returned", "warned"),
    [
        ((1,), {"b": 2}, (1, 2, 0, 0), []),
        ((1, 2, 3), {}, (1, 2, 3, 0), ["called() will accept b only by", "called() will accept c only by"]),
        (
            (1,),
            {"old_d": 4},
            (1, 0, 0, 4),
            ["called(old_d=…) is deprecated and will be removed in sparkwire 0.3: use d="],
        ),
        ((1, 2), {"old_d": 4}, (1, 2, 0, 4), ["called() will accept b only by", "called(old_d=…) is deprecated"]),
    ],
)
def test_deprecated_arguments(args: Any, named: Any, returned: Any, warned: list[str]) -> None:
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        assert called(*args, **named) == returned
    assert len(reported) == len(warned)
    for warning, beginning in zip(reported, warned, strict=True):
        assert warning.category is FutureWarning
        assert str(warning.message).startswith(beginning)
        assert warning.filename == __file__


@pytest.mark.parametrize(("args", "named"), [((1, 2, 3, 4), {}), ((1, 2), {"b": 2}), ((), {})])
def test_wrong_arguments_raise_pythons_own_error(args: Any, named: Any) -> None:
    with pytest.raises(TypeError, match=r"^called\(\)"):
        called(*args, **named)


def test_deprecated_functions() -> None:
    with pytest.warns(
        FutureWarning, match=r"^kafka_magic is deprecated since 0.2.0: use kafka_message\(message\).magic$"
    ):
        assert OLD.decode(pa.array([b"12345"], pa.binary())).to_pylist() == [ord("5")]
    [kafka] = [format for format in FORMATS if OLD.name in {function.name for function in format.functions}]
    assert f"**{OLD.deprecation}**" in page(kafka._replace(functions=(OLD,)))
