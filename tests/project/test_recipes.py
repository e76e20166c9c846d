"""The recipes of CONTRIBUTING.md work: applied to a copy of the tree, they add functions whose tests pass."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.process

LINKED = re.findall(
    r"^### ([^\n]*)\n(?:(?!^#).)*?\]\((docs/recipes/[\w-]+\.diff)\)",
    (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)
RECIPES = [(title, (ROOT / path).read_text("utf-8")) for title, path in LINKED]
# The function that each recipe adds, the sample that it reads, and its result.
ADDED = {
    "Add a field": ("dbus_header_length", "event_v2", 71),
    "Add a function": (
        "kafka_copy_index",
        "copy_index",
        [{"copied_ms": 1600000003370, "position": 0}, {"copied_ms": 1600000005607, "position": 1000}],
    ),
    "Add a format": ("pulse_sensor", "pulse", 258),
}
WITHOUT_FUNCTION = ["Add a codec", "Add a capture system"]
NAMED_ONLY = """
import sys, pyarrow as pa
from sparkwire import FUNCTIONS
from sparkwire.kafka import codecs
from sparkwire.kafka.drawing import CODECS

from tests.kafka.test_damage import batch, record, rows
print(codecs.NAMES[6], codecs.READABLE[2] >> 6 & 1, "later" in codecs.writable(), "later" in [one.name for one in CODECS])
print([row["error"] for row in rows(batch(record(b"value"), 6))])
print([row["compression"] for row in rows(batch(record(b"value"), 6), verify_crc=False)])
given = (pa.array([[{"value": b"v"}]]), pa.array([0]), pa.array(["later"]), pa.array([2], pa.int32()))
try:
    FUNCTIONS["to_kafka_records"].decode(*given)
except Exception as rejected:
    print(rejected)
"""
QUESTION = """
import sys, pyarrow as pa
from sparkwire.catalogue import FUNCTIONS, SAMPLES
name, sample = sys.argv[1:]
print(FUNCTIONS[name].decode(pa.array([SAMPLES[sample]]))[0].as_py())
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, its tests and tools, with every recipe applied."""
    tree = tmp_path_factory.mktemp("recipes") / "tree"
    for folder in ("udfs", "tests", "tools", "docs"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "integration"))
    for file in ("pyproject.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, tree)
    for _, diff in RECIPES:
        subprocess.run(["git", "apply", "-"], cwd=tree, input=diff, text=True, check=True)
    table = tree / "udfs" / "sparkwire" / "kafka" / "codecs.py"
    source = table.read_text("utf-8")
    assert source.count("\n)\n\nBY_ID") == 1
    table.write_text(
        source.replace("\n)\n\nBY_ID", '\n    Codec(6, "later", (2,), None, None, None),\n)\n\nBY_ID'), "utf-8"
    )
    run(tree, "-m", "tools.reference")  # as `make docs` does
    return tree


def run(tree: Path, *arguments: str) -> str:
    """Run Python in the copy, which only a separate process can import."""
    command = [sys.executable, *arguments]
    environment = subprocess.run(
        command, cwd=tree, env={"PYTHONPATH": f"{tree}/udfs:{tree}"}, capture_output=True, text=True, check=False
    )
    assert environment.returncode == 0, environment.stdout + environment.stderr
    return environment.stdout


def test_every_recipe_is_tested() -> None:
    assert sorted(path for _, path in LINKED) == sorted(
        f"docs/recipes/{file.name}" for file in (ROOT / "docs/recipes").iterdir()
    )
    assert sorted(title for title, _ in RECIPES) == sorted([*ADDED, *WITHOUT_FUNCTION])


def test_a_capture_system_changes_no_other_one() -> None:
    """Of the files that exist, only the list of declarations."""
    files = re.findall(r"^--- (\S+)\n\+\+\+ b/(\S+)$", dict(RECIPES)["Add a capture system"], re.MULTILINE)
    assert len(files) < 4
    changed = [name for old, name in files if old != "/dev/null"]
    assert changed == ["udfs/sparkwire/changes/declarations.py"]


@pytest.mark.parametrize("title", ADDED)
def test_recipe_adds_its_function(tree: Path, title: str) -> None:
    name, sample, answer = ADDED[title]
    assert run(tree, "-c", QUESTION, name, sample).strip() == str(answer)
    assert name in (tree / "docs" / "functions" / "index.md").read_text("utf-8")


def test_a_codec_that_is_a_name_alone(tree: Path) -> None:
    """Its batches are not read as those of another codec, and not written."""
    kinds, errors, named, rejected = run(tree, "-c", NAMED_ONLY).splitlines()
    assert kinds == "later 0 False False"
    assert (errors, named) == ("['UNKNOWN_CODEC']", "[None]")
    assert rejected.endswith("compression none, gzip, snappy, lz4, zstd or brotli, got 'later'"), rejected


def test_the_tests_of_the_recipes_pass(tree: Path) -> None:
    """The recipes' tests, and the tests of the catalogue: completeness, contract, documentation."""
    brought = re.findall(r"^\+\+\+ b/(tests/\w+/test_\w+\.py)$", "\n".join(diff for _, diff in RECIPES), re.MULTILINE)
    assert brought
    run(tree, "-m", "pytest", "-q", *brought, "tests/core/test_catalogue.py", "tests/databus/test_oracle.py")
