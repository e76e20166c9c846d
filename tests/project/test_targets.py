"""Each test belongs to exactly one make target, and `.ci/run` runs all of them."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT
from tests.targets import COLLECTED, EVERYDAY, LONGEST, TARGETS, target, unknown

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
RUN_BY_CI = ("demo", "test", "pages", "spark", "integration")
"""the targets that `.ci/run` calls, beside the matrix"""


def recipe(name: str) -> str:
    """The commands of a make target, with the variables that it uses."""
    [lines] = re.findall(rf"^{name}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return str(re.sub(r"\$\((\w+)\)", lambda name: _variable(name[1]), lines))


def _variable(name: str) -> str:
    found = re.search(rf"^{name} \??:?= *(.*)$", MAKEFILE, re.MULTILINE)
    return found[1] if found else ""


def selected(name: str) -> list[str]:
    """The marks of the tests that a make target runs. The integration tests are selected by their folder."""
    if recipe(name).endswith(" tests/integration\n"):
        return ["integration"]
    [expression] = re.findall(r' -m "([^"]+)"', recipe(name))
    return str(expression).split(" or ")


def test_each_mark_belongs_to_one_target_of_ci() -> None:
    run = [name for name in RUN_BY_CI if "pytest" in recipe(name)]
    assert sorted(mark for name in run for mark in selected(name)) == sorted(TARGETS)


def test_each_test_has_one_mark(request: pytest.FixtureRequest) -> None:
    collected = request.config.stash[COLLECTED]
    assert request.node.nodeid in collected
    assert [test for test, marks in collected.items() if len(marks & TARGETS.keys()) != 1] == []


def test_the_longest_files_exist_and_begin(request: pytest.FixtureRequest) -> None:
    assert [file for file in LONGEST if not (ROOT / file).exists()] == []
    files = list(dict.fromkeys(test.partition("::")[0] for test in request.config.stash[COLLECTED]))
    longest = [file for file in LONGEST if file in files]
    assert files[: len(longest)] == longest


def test_ci_runs_all_targets() -> None:
    called = re.findall(r"^make (\w+)", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert called == [*RUN_BY_CI, "matrix"]


def test_make_unit_runs_the_unit_tests() -> None:
    assert selected("unit") == ["unit"]
    assert selected("test") == ["unit", "everyday"]


@pytest.mark.parametrize(
    ("test", "needs_spark", "starts_processes", "expected"),
    [
        ("tests/kafka/test_files.py::test_rows", False, False, "unit"),
        ("tests/kafka/test_files.py::test_rows", True, False, "spark"),
        ("tests/kafka/test_files_seek.py::test_rows", False, False, "thorough"),
        ("tests/kafka/test_files.py::test_rows", False, True, "spark"),
        ("tests/spark/test_new.py::test_rows", False, False, "spark"),
        ("tests/spark/test_functions.py::test_cases[kafka]", True, False, "everyday"),
        ("tests/spark/test_functions.py::test_cases_of_another_name", True, False, "spark"),
        ("tests/docs/test_readme.py::test_blocks[README.md-2]", True, False, "everyday"),
        ("tests/docs/test_guide.py::test_page", True, False, "pages"),
        ("tests/project/test_recipes.py::test_tree", False, True, "pages"),
        ("tests/integration/test_broker.py::test_topic", True, True, "integration"),
    ],
)
def test_the_target_of_a_test(test: str, needs_spark: bool, starts_processes: bool, expected: str) -> None:
    assert target(test, needs_spark=needs_spark, starts_processes=starts_processes) == expected


def test_everyday_tests_exist(request: pytest.FixtureRequest) -> None:
    collected = request.config.stash[COLLECTED]
    assert unknown(list(collected)) == []
    files = {part.partition("::")[0] for part in EVERYDAY.values()}
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_a_missing_everyday_test_is_found() -> None:
    [part] = [part for name, part in EVERYDAY.items() if name == "sink kafka_log"]
    assert unknown(["tests/spark/test_sinks.py::test_other", "tests/core/test_names.py::test_x"]) == [
        part for part in EVERYDAY.values() if part.startswith(("tests/spark/test_sinks.py", "tests/core/test_names.py"))
    ]
    assert part in unknown(["tests/spark/test_sinks.py::test_modes_of_another_name"])
    assert part not in unknown([f"{part}[x]"])
