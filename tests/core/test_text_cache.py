"""The cache of what a worker parses from texts in data: it has a bound in bytes, and no function keeps texts without it."""

from __future__ import annotations

import ast
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark import cloudpickle

from sparkwire.base import text_cache as caches
from sparkwire.base.text_cache import MOST_BYTES, text_cache
from sparkwire.debezium.table_columns import schema_types
from tests.support import ROOT


def test_results_are_kept() -> None:
    calls = []

    @text_cache(2)
    def doubled(text: str) -> str:
        calls.append(text)
        return text * 2

    assert [doubled(text) for text in "aabba"] == ["aa", "aa", "bb", "bb", "aa"]
    assert calls == ["a", "b"]
    assert [doubled(text) for text in "cab"] == ["cc", "aa", "bb"]
    assert calls == ["a", "b", "c", "a", "b"]
    doubled.clear()
    assert (len(doubled), doubled.bytes) == (0, 0)
    assert doubled("z") == "zz"


def test_an_error_is_not_kept() -> None:
    cached = text_cache(2)(int)
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            cached("x")
    assert len(cached) == 0


def test_large_texts_have_a_bound_in_bytes() -> None:
    """300 declarations of 200 KB: the cache keeps those that fit, and at least the last one."""
    schema_types.clear()
    for number in range(300):
        schema_types(f"{number}" + " " * 200_000)
    assert MOST_BYTES - 400_000 < schema_types.bytes <= MOST_BYTES
    assert len(schema_types) < 21
    schema_types(" " * (2 * MOST_BYTES))
    assert len(schema_types) == 1
    schema_types.clear()


def test_the_size_counts_every_text_of_the_arguments() -> None:
    cached = text_cache(100, 1 << 12)(lambda texts, flag: len(texts))
    for number in range(50):
        cached((f"{number}" * 500, "b" * 500), True)
        assert len(cached) == 1 or cached.bytes <= 1 << 12
    assert len(cached) <= 4


def test_threads_leave_the_count_right() -> None:
    cached = text_cache(16)(str.upper)
    texts = [f"{number % 40}" for number in range(4000)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(cached, texts)) == texts
    assert len(cached) <= 16
    assert cached.bytes == sum(map(caches.size_of, cached._results))


def test_a_cache_of_a_module_is_pickled_by_its_name() -> None:
    """Functions that Spark sends to its workers refer to caches."""
    assert pickle.loads(pickle.dumps(schema_types)) is schema_types
    assert pickle.loads(cloudpickle.dumps(lambda: schema_types))() is schema_types
    assert b"_results" not in cloudpickle.dumps(schema_types)


def test_another_cache_is_pickled_without_its_results() -> None:
    @text_cache(2, 1 << 12)
    def doubled(text: str) -> str:
        return text * 2

    assert doubled("a") == "aa"
    copied = pickle.loads(cloudpickle.dumps(doubled))
    assert (len(doubled), len(copied), copied.bytes, copied.most, copied.most_bytes) == (1, 0, 0, 2, 1 << 12)
    assert copied("b") == "bb"
    assert len(copied) == 1


ROOMS = ("kafka", "databus", "datahub", "debezium", "avro", "json", "changes", "registry", "catalogue")
NO_TEXTS = {
    "sparkwire/kafka/tiered/encryption_keys.py": {"_cipher", "_private_key"},  # keys that a user names
}


def test_no_other_cache_keeps_texts() -> None:
    """A function with arguments is cached with `text_cache`, in the rooms that read data."""
    wrong = []
    for room in ROOMS:
        for path in (ROOT / "udfs" / "sparkwire" / room).rglob("*.py"):
            known = NO_TEXTS.get(str(path.relative_to(ROOT / "udfs")), set())
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.args.args and node.name not in known:
                    names = [ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list]
                    wrong += [f"{path}: {node.name}" for name in names if name in ("cache", "lru_cache")]
    assert wrong == []
