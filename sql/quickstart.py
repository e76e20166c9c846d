"""Run the programs of README.md over the bundled sample data, and print each with its result: ``make demo``.

On a new machine, the kernels that they need are compiled first, in two processes, while Spark starts. A line says what is going
on at least every ten seconds.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo import session

from sparkwire.kernels.cache import announcement, cached_kernels

README = Path(__file__).parents[1] / "README.md"
PERIOD = 5.0
"""time between two lines while a step runs [s]"""
_QUIET = "from sparkwire.kernels.cache import announcement; announcement.made = True\n"
_COMPILED = (
    'import sparkwire; sparkwire.read(f"{sparkwire.samples()}/kafka/orders-0").read_all()',
    "from sparkwire.catalogue.warm import decode_debezium; decode_debezium()",
)
"""programs that call the kernels of README's programs, each about half of them"""


def programs() -> list[str]:
    """The Python programs of README.md."""
    return re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@contextlib.contextmanager
def step(title: str, start: float) -> Iterator[None]:
    """Print the title, and every few seconds that the step still runs."""
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(PERIOD):
            print(f"[{time.monotonic() - start:3.0f} s] … {title}; {_kernels()}", flush=True)

    print(f"[{time.monotonic() - start:3.0f} s] {title}", flush=True)
    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _kernels() -> str:
    state = cached_kernels()
    return f"{state.files if state else 0} kernels in the cache"


def main() -> None:
    """See the module."""
    start = time.monotonic()
    announcement.made = True  # the steps say it
    with step("compile kernels, once per machine, and start Spark", start):
        compilers = [subprocess.Popen([sys.executable, "-c", _QUIET + program]) for program in _COMPILED]
        spark = session()
        for compiler in compilers:
            if compiler.wait():
                sys.exit(f"Exit code {compiler.returncode} of the process above: a kernel cannot be compiled.")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, program in enumerate(programs(), 1):
            print(f"\n── README.md, program {number} ──\n\n{textwrap.indent(program, '    ')}", flush=True)
            with step(f"run program {number}", start):
                exec(compile(program, f"{README.name} {number}", "exec"), names)
    spark.stop()
    print(f"\nDone in {time.monotonic() - start:.0f} s. More queries: {os.path.relpath(sys.executable)} sql/demo.py")


if __name__ == "__main__":
    main()
