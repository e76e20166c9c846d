"""`make golden`: how it reads and writes Kafka's log bytes, and which differences it finds."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.data.generators.comparison import Compared, compare_lines, differing_fields, first_of_each
from tests.data.generators.kafka import recipe, written
from tests.support import kafka_cases as golden

LOGS = {log.name.partition("/")[0]: log for log in golden.logs(("segments_v0", "segments_v1", "segments_other"))}


@pytest.mark.parametrize(
    ("folder", "versions"),
    [
        ("v0_gzip", {recipe.OLD}),
        ("v0_k38_gzip", {recipe.NEW}),
        ("v0_from_v1_producer_gzip", {recipe.MIDDLE}),
        ("v1_gzip_logappend", {recipe.MIDDLE}),
        ("mixed_v0_v1_v2", {recipe.OLD, recipe.MIDDLE, recipe.NEW}),
    ],
)
def test_each_batch_has_its_records_and_the_kafka_that_wrote_it(folder: str, versions: set[str]) -> None:
    log = LOGS[folder]
    batches = list(recipe.batches(log))
    assert {batch.version for batch in batches} == versions
    assert b"".join(batch.data for batch in batches) == log.data
    assert [batch.lines.count("\nrecord\t") for batch in batches] == [len(batch["records"]) for batch in log.batches]


def test_records_have_the_times_of_their_producer() -> None:
    """The results have the log's times for all records."""
    lines = "\n".join(batch.lines for batch in recipe.batches(LOGS["v1_gzip_logappend"])).split("\n")
    times = Counter(line.split("\t")[2] for line in lines if line.startswith("record"))
    assert len(times) > 100
    assert not times.keys() & {str(batch["maxTimestamp"]) for batch in LOGS["v1_gzip_logappend"].batches}


def test_other_bytes_are_found() -> None:
    batches = list(recipe.batches(LOGS["v0_gzip"]))
    same = [(batch, [b"", batch.data]) for batch in batches]
    assert list(written._differing(same)) == []
    batch = batches[3]
    same[3] = (batch, [batch.data[:-1] + b"?"])
    size = len(batch.data)
    assert list(written._differing(same)) == [
        f"batch 3 (gzip, by Kafka 0.8.2.2): stored are {size} bytes, made were {size}, not the same"
    ]


def test_other_fields_are_found() -> None:
    stored = {"a": 1, "b": {"c": [1, {"d": None}]}, "e": 2}
    made = {"a": 1, "b": {"c": [1, {"d": 3}]}, "f": 2}
    assert list(differing_fields("line", stored, stored)) == []
    assert list(differing_fields("line", stored, made)) == [
        "line.b.c[1].d: stored is nothing, made was 3",
        "line.e: stored is 2, made was nothing",
        "line.f: stored is nothing, made was 2",
    ]
    assert first_of_each([("one", []), ("two", ["x", "y"])]) == ["two: x"]


def test_other_lines_are_found() -> None:
    same = compare_lines("x.tsv", ["1", "2"], ["1", "2"])
    assert same == Compared(2, "lines of x.tsv written again", [])
    other = compare_lines("x.tsv", ["1", "2"], ["1", "two", "3"])
    assert other.differences == [
        "x.tsv, line 2: stored is 2, made was two",
        "x.tsv, line 3: stored is nothing, made was 3",
    ]
    assert str(other) == "3 lines of x.tsv written again, 2 differences"
