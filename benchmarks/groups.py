"""The groups of claims, in the order of the report."""

from __future__ import annotations

import importlib

from benchmarks.report import Row

GROUPS = (
    "kernels",
    "databus",
    "databus_writer",
    "kafka",
    "kafka_writer",
    "datahub",
    "datahub_writer",
    "sql",
    "kafka_sql",
    "cold",
)


def rows_of(group: str) -> list[Row]:
    """The claims of one group, measured."""
    rows: list[Row] = importlib.import_module(f"benchmarks.{group}").rows()
    return rows
