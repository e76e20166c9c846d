"""Before a release, the tag, the version and the change log are consistent."""

from __future__ import annotations

import pytest

from tests.support import ROOT
from tools.release import faults

LOG = "## 0.2.0 - 2027-01-01\n\n## 0.1.0 - 2026-11-25\n"


@pytest.mark.parametrize(
    ("version", "log", "tag", "expected"),
    [
        ("0.2.0", LOG, "v0.2.0", []),
        ("0.2.0", LOG, "v0.1.0", ["the tag v0.1.0 is not v0.2.0"]),
        ("0.3.0", LOG, "v0.3.0", ["CHANGELOG.md has no heading '## 0.3.0 - YYYY-MM-DD'"]),
        ("0.1.0", "## Unreleased\n", "v0.1.0", ["CHANGELOG.md has no heading '## 0.1.0 - YYYY-MM-DD'"]),
        ("0.1.0", "## Unreleased\n", "main", []),
        ("0.1.0", "## Unreleased\n", "", []),
    ],
)
def test_inconsistencies(version: str, log: str, tag: str, expected: list[str]) -> None:
    assert faults(version, log, tag) == expected


def test_the_workflow_runs_make_release() -> None:
    assert "- run: make release" in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
