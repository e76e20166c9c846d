"""``python -m sparkwire dump | doctor | warm | publish | recover``."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sparkwire.base.printable import printable


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages are printable: a shell's glob may put any file name into the arguments."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = _Parser(prog="python -m sparkwire", description="sparkwire from the command line.")
    commands = parser.add_subparsers(dest="command", required=True)
    dump = commands.add_parser("dump", help="print the rows of a file, a directory or a bucket, without Spark")
    _add_dump_arguments(dump)
    commands.add_parser("doctor", help="check sparkwire with this Python and its Spark")
    warm = commands.add_parser("warm", help="compile every kernel into a cache that can be shipped")
    warm.add_argument("directory", nargs="?", help="becomes NUMBA_CACHE_DIR; by default this Python's own cache")
    publish = commands.add_parser("publish", help="print the statements that put the functions into Unity Catalog")
    publish.add_argument("schema", help="catalog.schema")
    publish.add_argument("wheel", help="/Volumes/…/sparkwire-….whl, or another requirement of pip")
    publish.add_argument("--environment-version", default="5", help="Databricks' serverless environment")
    recover = commands.add_parser("recover", help="finish or undo what an interrupted write has left in a directory")
    recover.add_argument("path", help="the directory that was written to, local or a URI")
    recover.add_argument(
        "--job",
        action="append",
        default=[],
        metavar="JOB",
        help="a job that the error message names, and whose process has ended",
    )
    return parser


def _add_dump_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", help="a segment, directory, index, event file, bucket or file of JSON lines; local or a URI"
    )
    parser.add_argument(
        "--format",
        choices=("kafka_log", "databus"),
        help="read the files in this format; by default, their bytes decide",
    )
    parser.add_argument("--batches", action="store_true", help="show batches of a Kafka log instead of records")
    parser.add_argument("--key", help="show only records with this key: text, or bytes as 0x…")
    parser.add_argument("--offset", type=int, help="show only the record at this offset")
    parser.add_argument("--from", dest="start", help="start at this offset or time (Kafka), or at this SCN (Databus)")
    parser.add_argument("--head", type=int, metavar="N", help="stop after N rows")
    parser.add_argument("--corrupt", action="store_true", help="show only rows with an error")
    parser.add_argument("--columns", help="a comma list of columns")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="any option of the data source"
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines with every column")
    parser.add_argument("--output", metavar="FILE", help="write a .parquet, .arrow or .jsonl file instead")


def main(words: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. ``words``: by default those of the process."""
    _prepare_output()
    parser = arguments()
    parsed = parser.parse_args(words)
    try:
        code = _run(parser, parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, for example `head`, has closed the pipe
        sys.stderr.close()
        return 0
    except (ValueError, OSError) as failure:
        sys.stderr.write(f"{_sentence(failure)}\n")
        return 2
    return code


def _prepare_output() -> None:
    """Replace a closed stream, and escape characters that the encoding of a stream does not have."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _sentence(failure: Exception) -> str:
    if isinstance(failure, OSError) and failure.strerror:
        place = "the standard output" if failure.filename is None else str(failure.filename)
        return printable(f"cannot use {place}: {failure.strerror}")
    return printable(str(failure))


def _run(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> int:
    if parsed.command == "dump":
        from sparkwire.catalogue import dump_command

        return dump_command.run(parsed)
    if parsed.command == "doctor":
        return _doctor()
    if parsed.command == "recover":
        return _recover(parsed.path, parsed.job)
    return _warm(parsed.directory) if parsed.command == "warm" else _publish(parser, parsed)


def _doctor() -> int:
    """Run ``doctor`` in the session that PySpark's settings define: SPARK_REMOTE, spark-defaults, or a local one."""
    if importlib.util.find_spec("pyspark") is None:
        from sparkwire.catalogue.diagnosis import examine, report

        diagnosis = report(["no pyspark here"], examine(), [])
    else:
        import sparkwire

        diagnosis = sparkwire.doctor()
    sys.stdout.write(f"{diagnosis}\n")
    return 0


def _warm(directory: str | None) -> int:
    if directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
        os.environ["NUMBA_CACHE_DIR"] = str(Path(directory).resolve())
    from sparkwire.catalogue.warm import warm
    from sparkwire.kernels.cache import cached_kernels, collect, why_none

    if directory and cached_kernels():
        collect()
    start, before = time.monotonic(), cached_kernels()
    calls = warm(_show_progress)
    state = cached_kernels()
    if state is None:
        why = printable(why_none())
        sys.stderr.write(f"no kernel was kept, {why}: give a directory, or see python -m sparkwire doctor\n")
        return 1
    new = state.files - (before.files if before and before.directory == state.directory else 0)
    sys.stdout.write(
        f"{calls} calls, {new} kernels compiled in {time.monotonic() - start:.0f} s; "
        f"{state.files} kernels, {state.bytes / 1e6:.0f} MB in {printable(str(state.directory))}\n"
    )
    return 0


def _show_progress(done: int, all: int) -> None:
    """Show a progress bar, only on a terminal."""
    if sys.stderr.isatty():
        filled = 40 * done // all
        bar = "#" * filled + "-" * (40 - filled)
        sys.stderr.write(f"\r[{bar}] {done} of {all} calls" + ("\n" if done == all else ""))
        sys.stderr.flush()


def _recover(path: str, dead: list[str]) -> int:
    from sparkwire.core.sources.job import recover

    try:
        lines = recover(path, dead)
    except (OSError, ValueError) as failure:
        sys.stderr.write(f"{_sentence(failure)}\n")
        return 1
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines or [f"{path} has no unfinished job"]))
    return 0


def _publish(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> int:
    from sparkwire.spark.functions.unity import statements

    try:
        for statement in statements(parsed.schema, parsed.wheel, parsed.environment_version):
            sys.stdout.write(f"{statement};\n\n")
    except ValueError as failure:
        parser.error(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
