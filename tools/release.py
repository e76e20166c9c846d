"""Check a release: ``python -m tools.release [TAG]``, for the distributions in `dist`.

A tag must be ``v`` and the package's version, and the change log must have that version with a date. Without a tag it is a
trial: only the distributions must be there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import sparkwire

ROOT = Path(__file__).parents[1]


def faults(version: str, change_log: str, tag: str) -> list[str]:
    """The problems of a version under a tag, a sentence for each; none for a branch."""
    if not re.match(r"v\d", tag):
        return []
    result = [] if tag == f"v{version}" else [f"the tag {tag} is not v{version}"]
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d{{2}}-\d{{2}}$", change_log, re.MULTILINE):
        result.append(f"CHANGELOG.md has no heading '## {version} - YYYY-MM-DD'")
    return result


def main(tag: str = "") -> int:
    result = faults(sparkwire.__version__, (ROOT / "CHANGELOG.md").read_text("utf-8"), tag)
    if not list((ROOT / "dist").glob(f"sparkwire-{sparkwire.__version__}.tar.gz")):
        result.append(f"dist has no sparkwire-{sparkwire.__version__}.tar.gz: make distributions")
    sys.stderr.writelines(f"{fault}\n" for fault in result)
    return bool(result)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
