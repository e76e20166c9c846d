"""``python -m sparkwire.doctor``: what the doctor finds in this Python, and in the Spark that it finds.

Nothing is imported from here: ``sparkwire.doctor`` is the function.
"""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """The session is the one that pyspark's own settings give: SPARK_REMOTE, spark-defaults, or a local one."""
    if importlib.util.find_spec("pyspark") is None:
        from sparkwire.diagnosis import examine, report

        sys.stdout.write(report(["no pyspark here"], examine(), []))
        return
    import sparkwire

    sparkwire.doctor()


if __name__ == "__main__":
    main()
