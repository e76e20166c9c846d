"""Check a release: ``python -m tools.release [TAG]``, for the distributions in `dist`.

The change log must have the package's version with a date. No function may belong to a later version. The tag, if any, must be
``v`` and the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import sparkwire
from sparkwire.catalogue import FUNCTIONS

ROOT = Path(__file__).parents[1]


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def faults(version: str, change_log: str, since: dict[str, str], tag: str = "") -> list[str]:
    """The problems of this version, a sentence for each."""
    result = [f"{name} is since {of}, after {version}" for name, of in since.items() if number(of) > number(version)]
    dated = re.findall(r"^## (\S+) - \d{4}-\d{2}-\d{2}$", change_log, re.MULTILINE)
    if version not in dated:
        result.append(f"CHANGELOG.md has no heading '## {version} - YYYY-MM-DD'")
    result += [
        f"{name} is since {of}, which CHANGELOG.md does not have" for name, of in since.items() if of not in dated
    ]
    if tag.startswith("v") and tag != f"v{version}":
        result.append(f"the tag {tag} is not v{version}")
    return result


def of_this_package(tag: str = "") -> list[str]:
    """The problems of this source tree."""
    since = {name: function.since for name, function in FUNCTIONS.items()}
    return faults(sparkwire.__version__, (ROOT / "CHANGELOG.md").read_text("utf-8"), since, tag)


def main(tag: str = "") -> int:
    result = of_this_package(tag)
    if not list((ROOT / "dist").glob(f"sparkwire-{sparkwire.__version__}.tar.gz")):
        result.append(f"dist has no sparkwire-{sparkwire.__version__}.tar.gz: make distributions")
    sys.stderr.writelines(f"{fault}\n" for fault in result)
    return bool(result)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
