"""Tables of many columns: the work grows as their number, and a batch becomes parts of few rows."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from sparkwire.changes import formats
from sparkwire.json.scan import tree_of
from tests.support import system_messages as m
from tests.support.decoded import changes_of


def test_a_batch_in_parts_is_the_same() -> None:
    """Few rows are in memory at once, if a table has many columns."""
    columns = {"id": "INT", "name": "STRING", "amount": "DECIMAL(10,2)"}
    records = m.numbered([m.record(m.canal(data=[{"id": str(k), "name": "x"}] * (k % 3))) for k in range(9)])
    whole = changes_of(records, "canal", table=m.TABLE, columns=columns, keys=["id"])
    for cells in (1, 6, 12):
        with mock.patch.object(formats, "_CELLS", cells):
            parts = changes_of(records, "canal", table=m.TABLE, columns=columns, keys=["id"])
        assert (parts.rows, parts.lines) == (whole.rows, whole.lines)


def test_too_many_columns() -> None:
    columns = {f"c{k}": "INT" for k in range(formats.MAX_COLUMNS + 1)}
    with pytest.raises(
        ValueError, match=r"^the table has 20001 columns, and changes reads at most 20000: pass .* as columns="
    ):
        formats.types_of("maxwell", columns)


def test_the_tree_of_columns_is_made_in_linear_time() -> None:
    """It looks at each path a few times, however many there are."""
    looks = 0

    class Path(tuple[str, ...]):
        def __getitem__(self, key: Any) -> Any:
            nonlocal looks
            looks += 1
            return super().__getitem__(key)

    for count in (10, 1000):
        looks = 0
        assert tree_of([Path((f"column_{k}",)) for k in range(count)]).slots == count
        assert looks <= 5 * count
