"""Check the recipe for Spark's AUTO CDC: Spark validates the pipeline and its flow in a dry run.

The pipeline itself cannot run, because no connector with row-level operations exists for a Spark with AUTO CDC.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.support.client_history import RECIPES

SPARK = Path(pyspark.__file__).parent
RECIPE = RECIPES / "streaming" / "databus_auto_cdc.py"
SPEC = """
name: changes
storage: file://{folder}/storage
libraries: [{{glob: {{include: "definitions/**"}}}}]
configuration: {{spark.sql.warehouse.dir: "{folder}/warehouse"}}
"""
EVENTS = """
from pyspark import pipelines
from pyspark.sql import SparkSession

@pipelines.table
def events():
    return SparkSession.active().readStream.schema("stream STRING, position LONG, event BINARY").parquet("{folder}")
"""


def dry_run(folder: Path, recipe: str) -> subprocess.CompletedProcess[str]:
    for name in ("arriving", "definitions"):
        (folder / name).mkdir(parents=True)
    (folder / "pipeline.yml").write_text(SPEC.format(folder=folder))
    (folder / "definitions" / "events.py").write_text(EVENTS.format(folder=folder / "arriving"))
    # A dry run uses only the name of the table's format.
    (folder / "definitions" / "recipe.py").write_text(recipe.replace('format="iceberg"', 'format="parquet"'))
    paths = os.pathsep.join(path for path in sys.path if path)
    program, spec = str(SPARK / "bin" / "spark-pipelines"), str(folder / "pipeline.yml")
    command = [program, "dry-run", "--spec", spec, "--remote", "local[2]"]
    environment = {"SPARK_HOME": str(SPARK), "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"}
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_spark_accepts_the_recipe(tmp_path: Path) -> None:
    recipe = RECIPE.read_text("utf-8")
    taken = dry_run(tmp_path / "taken", recipe)
    assert taken.returncode == 0, taken.stderr[-3000:]
    assert "Run is COMPLETED" in taken.stdout + taken.stderr
    rejected = dry_run(tmp_path / "rejected", recipe.replace('"key_long", "key_bytes"]', '"no_such_key"]'))
    assert rejected.returncode != 0
    assert "no_such_key" in rejected.stdout + rejected.stderr
