"""Merge into Delta and Iceberg. One process finds out all facts about a kind of table; each test is about one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest

from tests.integration.merge_table import GROUPS, ON_CONNECT, TRUNCATES, facts_of, lacking, plain
from tests.integration.packages import DELTA, ICEBERG, run_python
from tests.support import merge_scenarios as scenarios

ANOTHER = "WriteConflictError: another job writes to shop.%s: only one merge at a time may write to a table. Run this merge again"
NOT_MINE = "ValueError: merge did not create %s: name another target"
NO_TABLE = (
    "is not empty, and has no table: a job that began to create it may have been killed. Delete the directory, or name another "
    "target"
)
LOST = (
    "ValueError: the table shop.lost__rows does not exist, and its view shop.lost does: restore the table, or drop the view and "
    "read the changes from their beginning"
)
NO_VIEWS = (
    'ValueError: deletes="remove" needs a catalog with views, and the view plain.shop.t cannot be created: pass deletes="keep", '
    "or name a target in another catalog"
)
EACH = {
    **{name: one for own in scenarios.GROUPS.values() for name, one in own.items()},
    **{f"truncate: {name}": scenarios.TRUNCATES[name] for name in TRUNCATES},
}
LATE = [[[1, 10]], [], [], [[1, 25]]]
"""the rows after an INSERT, a DELETE, changes before it, and an INSERT after it"""

RIGHT: dict[str, Any] = {
    "streamed_twice": plain(lacking().table),
    "streams_and_batches": [[0, 1]],
    "numbers_and_times_as_orders": LATE * 2,
    "a_view_shows_the_rows_that_exist": [
        [[2, 20], [3, 3]],
        ["id", "v", "_order_", "_time_"],
        [[1, None, True], [2, 20, False], [3, 3, False]],
        ["viewed__rows"],
        [[2, 20], [3, 3]],
    ],
    "kept_rows_are_in_the_table_itself": [
        [[3, 3]],
        [[1, 1, True], [2, 2, True], [3, 3, False]],
        ["id", "v", "_order_", "_time_", "_deleted_"],
    ],
    "a_merge_is_one_commit": 1,
    "settings_stay": {},
    "columns_are_added_and_widen": [[[1, 1, "x"], [3, 2**40, "y"], [4, 4, None]], "long"],
    "times_and_names_that_delta_needs_features_for": [
        [[1, "2024-02-29 01:02:03", 1]],
        *[[[2, "2024-02-29 01:02:03", 1]]] * 2,
    ],
    "a_date_becomes_a_time": [["no error"] * 3, ["2024-02-29 00:00:00"] * 3],
    "deleted_rows_can_be_purged": [1, [[2, 3]]],
    "an_epoch_that_replaces_the_one_before": [[1, 10]],
    "a_name_with_other_characters": [[1, 1], [2, 2]],
    "a_delta_path": [[[2, 2]], ["id", "v", "_order_", "_time_"]],
    "a_path_that_a_killed_job_began": [
        False,
        [[1, 1], [2, 2]],
        f"ValueError: the directory of delta.`DIRECTORY/of others` {NO_TABLE}",
        f"ValueError: the directory of shop.begun__rows {NO_TABLE}",
        ["part-0.csv"],
    ],
    "results": [[3, 3, 0, 0], [3, 1, 2, 0], [3, 2, 1, 0]],
    "late_as_a_whole": [[0, []], [1, []], [1, ["all 1 keys of shop.anew are late: t"]]],
    "orders_that_cannot_be_compared": [
        [
            'ValueError: the changes of the key {"id":1} are in the partitions 0 and 1',
            'ValueError: TRUNCATE and the changes of the key {"id":2} are in the partitions 1 and 0',
        ],
        0,
    ],
    "foreign_and_lost_tables": [
        {
            "foreign": "ValueError: shop.foreign exists, and merge did not create it: name another target",
            "foreign, kept": NOT_MINE % "shop.foreign",
            "foreign rows": NOT_MINE % "shop.other__rows",
            "lost": LOST,
            "removes": 'ValueError: shop.mine was made with deletes="remove": continue with it, or name another target',
            "keeps": 'ValueError: shop.mine_kept was made with deletes="keep": continue with it, or name another target',
            "another key": "ValueError: shop.mine has the key id, and the changes have v: pass its keys, or name another target",
            "two tables": "ValueError: the changes are of two tables, t and u: filter them by _table_, or name the table in "
            "sparkwire.changes with its database",
            "an interval": "ValueError: Delta and Iceberg have no type INTERVAL: cast the column i before merge",
        },
        [[1, 1]],
    ],
    "a_dropped_view_is_made_again": [[1, 1], [2, 2]],
    "a_catalog_without_views": [
        NO_VIEWS,
        0,
        [[1, 1]],
    ],
    "an_update_during_a_merge": [ANOTHER % "busy", [[1, 9], [2, 3]]],
    "a_change_between_reading_and_merging": [ANOTHER % "raced", [[2, 3]]],
    "two_merges_at_once": [[[0, 12, False], [1, 12, False], [2, 12, False], [11, None, True], [12, None, True]], []],
    "a_lost_worker": [[[1, 2]], []],
    "looked_up": [False, True],
}
NO_TIME = (
    "ValueError: column at of shop.days is DATE, and cannot become TIMESTAMP_NTZ there: cast it, or name another target"
)
KINDS = ("delta", "iceberg")
# Iceberg does not tell how many rows a TRUNCATE ends.
OF_ICEBERG = {
    "results": [[3, 3, 0, 0], [3, 1, 2, 0], [3, None, 1, 0]],
    "times_and_names_that_delta_needs_features_for": [[[order, "2024-02-29 01:02:03", 1]] for order in (1, 2)],
    "a_date_becomes_a_time": [["no error", NO_TIME, "no error"], ["2024-02-29"] * 2],
}


Found = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The facts about a kind of table and an interface; one process finds them all out."""

    @cache
    def facts(kind: str, interface: str = "classic") -> dict[str, Any]:
        package = {"delta": DELTA, "iceberg": ICEBERG}[kind]
        directory = str(tmp_path_factory.mktemp(kind))
        printed = run_python(package, "-m", "tests.integration.merge_table", kind, directory, interface)
        return dict(json.loads(line) for line in printed.splitlines() if line.startswith('["'))

    return facts


def each(names: Callable[[str], Iterable[str]]) -> pytest.MarkDecorator:
    """A case for each kind of table, and each name."""
    return pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in names(kind)])


@each(lambda kind: EACH if kind == "delta" else [name for group in GROUPS[kind] for name in scenarios.GROUPS[group]])
def test_rows_of_a_scenario(found: Found, kind: str, name: str) -> None:
    facts = found(kind)["scenarios"]
    assert isinstance(facts, dict), facts
    assert facts[name] == [scenarios.wanted(EACH[name].rows), scenarios.wanted(EACH[name].deleted)]


@each(lambda kind: [name for name in facts_of(kind) if name != "scenarios"])
def test_a_fact(found: Found, kind: str, name: str) -> None:
    right = RIGHT | (OF_ICEBERG if kind == "iceberg" else {})
    fact = found(kind)[name]
    assert fact == right[name], fact


@pytest.mark.parametrize("name", ON_CONNECT)
def test_a_fact_on_spark_connect(found: Found, name: str) -> None:
    fact = found("delta", "connect")[name]
    assert fact == RIGHT[name], fact
