"""Create, start and stop a real PostgreSQL server: only on the loopback interface, with logical decoding."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

MISSING = "could not get PostgreSQL: there is no initdb here; install Debian's package postgresql"
_PLACES = "/usr/lib/postgresql"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "fsync": "off",
    "timezone": "UTC",
    "shared_buffers": "16MB",
    "autovacuum": "off",  # it moves rows, which changes their order in results
}


class Postgres(NamedTuple):
    """A running server."""

    programs: Path
    port: int
    database: str = "postgres"

    def new_database(self, name: str) -> Postgres:
        """Create another database. Returns the server with this database."""
        self.run(f"CREATE DATABASE {name};")
        return self._replace(database=name)

    def run(self, sql: str) -> list[str]:
        """Run statements, each in its own transaction unless they contain ``BEGIN``. Returns the lines of the results."""
        psql = self._psql("--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1")
        done = subprocess.run(psql, input=sql, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table in PostgreSQL's JSON."""
        lines = self.run(f"SELECT row_to_json(t) FROM {table} t;")
        return [json.loads(line, parse_float=Decimal) for line in lines]

    def _psql(self, *options: str) -> list[str]:
        server = ("--host=127.0.0.1", f"--port={self.port}", "--username=postgres", f"--dbname={self.database}")
        return [str(self.programs / "psql"), "--no-psqlrc", *server, *options]


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A new server, until the context ends.

    It does not run as root. Other users cannot read pytest's directories, so it has a separate one. Raises FileNotFoundError if
    PostgreSQL is not installed.
    """
    programs = programs_of_postgres()
    if programs is None:
        raise FileNotFoundError(MISSING)
    user = "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="sparkwire-postgres-") as place:
        if user:
            os.chown(place, pwd.getpwnam(user).pw_uid, -1)
        data, log, port = Path(place, "data"), Path(place, "log"), free_port()
        initdb = ("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")
        settings = " ".join(f"-c {name}='{value}'" for name, value in (_SETTINGS | {"port": str(port)}).items())
        control = ("pg_ctl", "--wait", f"--pgdata={data}")
        _call(programs, user, place, *initdb, f"--pgdata={data}")
        _call(programs, user, place, *control, f"--log={log}", f"--options={settings}", "start")
        try:
            yield Postgres(programs, port)
        finally:
            _call(programs, user, place, *control, "--mode=immediate", "stop")


def _call(programs: Path, user: str | None, place: str, program: str, *arguments: str) -> None:
    command = [str(programs / program), *arguments]
    # The server inherits its standard output, so a pipe would stay open.
    with Path(place, "said").open("w+") as said:
        done = subprocess.run(command, cwd=place, user=user, stdout=said, stderr=subprocess.STDOUT, check=False)
        said.seek(0)
        assert done.returncode == 0, said.read()


def programs_of_postgres() -> Path | None:
    """The folder with the server's programs of the newest installed version. Debian has a folder for each version."""
    program = shutil.which("initdb")
    places = [Path(program).resolve()] if program else sorted(Path(_PLACES).glob("*/bin/initdb"))
    return places[-1].parent if places else None


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
