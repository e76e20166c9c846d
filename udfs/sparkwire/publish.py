"""``python -m sparkwire.publish --sql catalog.schema wheel``: the statements that put the functions into Unity Catalog.

Nothing is imported from here: ``sparkwire.publish`` is the function.
"""

from __future__ import annotations

import argparse
import sys

from sparkwire.publishing import ENVIRONMENT_VERSION, statements


def main() -> None:
    """Print them; they run in a SQL editor, a warehouse or `databricks` jobs alike."""
    parser = argparse.ArgumentParser(
        prog="python -m sparkwire.publish", description="Functions for Unity Catalog, as SQL."
    )
    parser.add_argument("--sql", action="store_true", required=True, help="print the statements")
    parser.add_argument("schema", help="catalog.schema")
    parser.add_argument("wheel", help="/Volumes/…/sparkwire-….whl, or a requirement such as sparkwire==0.1.0")
    parser.add_argument("--environment-version", default=ENVIRONMENT_VERSION)
    given = parser.parse_args()
    try:
        for statement in statements(given.schema, given.wheel, given.environment_version):
            sys.stdout.write(f"{statement};\n\n")
    except ValueError as refused:
        parser.error(str(refused))


if __name__ == "__main__":
    main()
