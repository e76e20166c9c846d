"""The version, the change log and the releases in functions' docs are consistent."""

from __future__ import annotations

import pytest

from tests.support import ROOT
from tools.release import faults, of_this_package

LOG = "## 0.2.0 - 2027-01-01\n\n## 0.1.0 - 2026-11-25\n"


def test_of_this_package() -> None:
    assert of_this_package() == []


@pytest.mark.parametrize(
    ("version", "log", "since", "tag", "expected"),
    [
        ("0.2.0", LOG, "0.1.0", "v0.2.0", []),
        ("0.2.0", LOG, "0.1.0", "main", []),
        ("0.1.0", LOG, "0.2.0", "", ["f is since 0.2.0, after 0.1.0"]),
        ("0.2.0", LOG, "0.1.0", "v0.1.0", ["the tag v0.1.0 is not v0.2.0"]),
        ("0.3.0", LOG, "0.1.0", "", ["CHANGELOG.md has no heading '## 0.3.0 - YYYY-MM-DD'"]),
        ("0.2.0", LOG, "0.1.5", "", ["f is since 0.1.5, which CHANGELOG.md does not have"]),
    ],
)
def test_inconsistencies(version: str, log: str, since: str, tag: str, expected: list[str]) -> None:
    assert faults(version, log, {"f": since}, tag) == expected


def test_the_workflow_runs_make_release() -> None:
    assert "- run: make release" in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
