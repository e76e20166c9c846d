"""Which make target runs a test: each test belongs to exactly one of the marks in ``TARGETS``.

``tests/conftest.py`` adds the mark when pytest collects the tests. A new test belongs to ``unit`` if it needs neither Spark nor
a process, and to ``spark`` otherwise: ``EVERYDAY``, ``PAGES`` and ``THOROUGH`` list the exceptions.
``tests/project/test_targets.py`` compares the marks with the Makefile and ``.ci/run``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

TARGETS: Final = {
    "unit": "needs neither Spark nor a process: make unit, make test",
    "thorough": "the same with many cases, in `THOROUGH`: make without-java, make spark",
    "everyday": "the most important ones with Spark, in `EVERYDAY`: make test",
    "pages": "documentation, notebooks, recipes, SQL examples, in `PAGES`: make pages",
    "spark": "all others, which need Spark or start processes: make spark",
    "integration": "against real servers and clusters: make integration",
}

PAGES: Final = (
    "tests/docs/",
    "tests/project/test_recipes.py",
    "tests/spark/test_client_recipes.py",
    "tests/spark/test_kafka.py",
)

THOROUGH: Final = (
    "tests/changes/test_golden_",
    "tests/core/test_contracts.py::test_one_batch_is_many_batches",
    "tests/core/test_jobs.py::test_each_step_",
    "tests/core/test_odd_names.py::test_a_log",
    "tests/debezium/test_golden.py",
    "tests/kafka/test_files.py::test_corruption",
    "tests/kafka/test_files.py::test_rows_do_not_depend_on_splits",
    "tests/kafka/test_files_follow.py",
    "tests/kafka/test_files_search.py",
    "tests/kafka/test_files_seek.py",
    "tests/kafka/test_picture.py",
    "tests/kafka/test_remote.py",
    "tests/kafka/test_remote_holes.py",
)
"""tests that take seconds; make unit has at most 90 s"""

_TRUNCATE: Final = "tests/spark/test_merge_statements.py::test_rows_after_a_truncate"

EVERYDAY: Final = {
    "functions in SQL": "tests/spark/test_functions.py::test_cases",
    "their examples": "tests/spark/test_functions.py::test_example",
    "their view": "tests/spark/test_functions.py::test_functions_view",
    "their errors": "tests/spark/test_functions.py::test_wrong_arguments",
    "column functions": "tests/spark/test_functions.py::test_column_functions",
    "the pandas interface": "tests/spark/test_functions.py::test_pandas_interface",
    "Spark Connect": "tests/spark/test_connect.py::test_functions",
    "source kafka_log": "tests/spark/test_source_kafka.py::test_a_broker_directory",
    "source kafka_log in SQL": "tests/spark/test_source_kafka.py::test_a_view_in_sql",
    "errors of a source": "tests/spark/test_source_kafka.py::test_no_segments",
    "kafka_log as a stream": "tests/spark/test_source_streams.py::test_data_loss_is_an_error",
    "databus as a stream": "tests/spark/test_source_streams.py::test_whole_windows",
    "source of a cluster's metadata": "tests/spark/test_kafka_cluster.py::test_topics_partitions_and_the_rest",
    "sink kafka_log": "tests/spark/test_sinks.py::test_modes",
    "sink kafka_log as a stream": "tests/spark/test_sinks.py::test_a_stream_without_record_batches",
    "sink databus, source databus": "tests/spark/test_sinks.py::test_events_written_again[False-relay_v1]",
    "changes, current, merge into a path": "tests/docs/test_readme.py",
    "the fold in batches": "tests/spark/test_fold.py::test_batches_in_any_order",
    "targets of merge, which start no Spark": "tests/spark/test_merge_targets.py",
    "scenarios of merge": "tests/spark/test_merge_statements.py::test_rows_after_merges",
    "rows around a TRUNCATE": f"{_TRUNCATE}[rows before, at and after it]",
    "values around a TRUNCATE": f"{_TRUNCATE}[late, between a value and the row that lacks it]",
    "a later TRUNCATE": f"{_TRUNCATE}[a later one]",
    "epochs around a TRUNCATE": f"{_TRUNCATE}[a partition of an epoch that it has superseded]",
    "facts of a batch": "tests/spark/test_merge_batch.py",
    "what merge stores, and late keys": "tests/spark/test_merge_clauses.py",
    "an epoch that replaces others": "tests/spark/test_fold.py::test_an_epoch_that_replaces_the_ones_before",
    "orders of Canal": "tests/spark/test_canal_order.py",
    "the result of merge": "tests/spark/test_merge.py::test_the_result_counts_what_happened",
    "random histories in current": "tests/spark/test_current.py::test_current_equals_the_model[0]",
    "what current compares": "tests/spark/test_current.py::test_two_partitions_are_never_compared",
    "what current need not compare": "tests/spark/test_current.py::test_only_a_comparison_that_decides_counts",
    "a TRUNCATE in current": "tests/spark/test_current.py::test_a_truncate_ends_rows_up_to_its_order",
    "values that messages lack": "tests/spark/test_current.py::test_values_that_travel_and_values_that_do_not",
    "changes without order or operation": "tests/spark/test_current.py::test_a_change_without_order_or_operation_is_an_error",
    "a change of the key that comes again": "tests/spark/test_current.py::test_a_change_of_the_key_that_comes_again",
    "the table at a time": "tests/spark/test_current.py::test_as_of_a_change_without_a_time",
    "the table after a position": "tests/spark/test_current.py::test_until_an_order[logs]",
    "the table after an offset": "tests/spark/test_current.py::test_until_an_order[kafka]",
    "the table after a number": "tests/spark/test_current.py::test_until_a_number_includes_it",
    "topics and logs in current": "tests/spark/test_current.py::test_topics_and_logs_are_never_compared",
    "two rows with one order": "tests/spark/test_current.py::test_of_two_rows_with_one_order_the_complete_one_counts",
    "two tables": "tests/spark/test_current.py::test_two_tables_are_an_error[NULL-INSERT]",
    "Avro payloads": "tests/spark/test_avro.py::test_there_and_back",
    "a registry over HTTP": "tests/spark/test_registries.py::test_rows_of_a_registry",
    "Protobuf of a registry": "tests/spark/test_registered_rows.py::test_protobuf",
    "rows of DataHub": "tests/spark/test_datahub.py",
    "rows of Debezium": "tests/spark/test_debezium.py::test_rows_of_a_topic",
    "Databus consumers": "tests/spark/test_client.py::test_each_stream_is_dispatched_in_its_order",
    "doctor": "tests/spark/test_doctor.py::test_of_a_session",
    "commands on the pages": "tests/docs/test_commands.py",
    "names on the pages": "tests/docs/test_references.py",
    "imports in any order": "tests/core/test_names.py::test_a_module_hides_no_function",
}
"""the beginnings of the names of tests, by what they stand for"""

LONGEST: Final = (
    "tests/integration/test_merge_table.py",
    "tests/integration/test_neighbours.py",
    "tests/integration/test_live_changes.py",
    "tests/integration/test_debezium_current.py",
    "tests/integration/test_delivery.py",
    "tests/integration/test_way_back_kills.py",
    "tests/spark/test_merge_kills.py",
    "tests/spark/test_merge.py",
    "tests/spark/test_fold.py",
    "tests/spark/test_changes_page.py",
    "tests/spark/test_merge_statements.py",
    "tests/databus/test_memory.py",
    "tests/spark/test_discovery.py",
)
"""The files that take longest. They begin first, so that both processes end together."""

COLLECTED: Final = pytest.StashKey[dict[str, set[str]]]()
"""the marks of all collected tests, by pytest's name, before it selects some"""


def target(test: str, *, needs_spark: bool, starts_processes: bool) -> str:
    """The mark of a test.

    Parameters
    ----------
    test
        pytest's name for it: ``tests/core/test_names.py::test_a[b]``
    needs_spark
        whether it uses the fixture ``spark``
    starts_processes
        whether it has the mark ``process``
    """
    folder = test.split("/")[1]
    if folder == "integration":
        return "integration"
    if any(_is_part(test, part) for part in EVERYDAY.values()):
        return "everyday"
    if test.startswith(PAGES):
        return "pages"
    if folder == "spark" or needs_spark or starts_processes:
        return "spark"
    return "thorough" if test.startswith(THOROUGH) else "unit"


def unknown(tests: Iterable[str]) -> list[str]:
    """The parts of ``EVERYDAY`` without a test, though tests of the same file were collected."""
    all = list(tests)
    files = {test.partition("::")[0] for test in all}
    parts = [part for part in EVERYDAY.values() if part.partition("::")[0] in files]
    return [part for part in parts if not any(_is_part(test, part) for test in all)]


def _is_part(test: str, part: str) -> bool:
    return test == part or test.startswith((f"{part}::", f"{part}["))
