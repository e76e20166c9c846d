"""Create, start and stop a real MariaDB server: only on the loopback interface, with a binlog of full rows."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration.postgres import free_port

MISSING = "could not get MariaDB: there is no mariadbd here; install Debian's package mariadb-server"
USER = "dbz"
"""the user with all privileges over TCP; also the password"""
_SETTINGS = {
    "bind-address": "127.0.0.1",
    "server-id": "4711",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "sql-mode": "NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
    "innodb-buffer-pool-size": "64M",
    "innodb-flush-log-at-trx-commit": "2",
}
_STARTS_WITHIN = 60  # [s]


class MariaDB(NamedTuple):
    """A running server."""

    socket: Path
    port: int
    database: str = ""

    def run(self, sql: str) -> list[str]:
        """Run statements. Returns the lines of their results."""
        use = f"USE {self.database};\n" if self.database else ""
        options = ("--no-defaults", "--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4")
        client = ["mariadb", *options, f"--socket={self.socket}", "--user=root"]
        done = subprocess.run(client, input=use + sql, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.removesuffix("\n").split("\n") if done.stdout else []

    def json(self, sql: str) -> list[Any]:
        """The results of statements whose rows are JSON values."""
        return [json.loads(line) for line in self.run(sql)]


@contextmanager
def running_mariadb() -> Iterator[MariaDB]:
    """A new server, until the context ends. It does not run as root. Raises FileNotFoundError if MariaDB is not installed."""
    if programs_of_mariadb() is None:
        raise FileNotFoundError(MISSING)
    user = "mysql" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    with tempfile.TemporaryDirectory(prefix="sparkwire-mariadb-") as place:
        Path(place).chmod(0o755)
        if os.geteuid() == 0:
            os.chown(place, pwd.getpwnam(user).pw_uid, -1)
        server = MariaDB(Path(place, "socket"), free_port())
        data = f"--datadir={Path(place, 'data')}"
        install = ["mariadb-install-db", "--no-defaults", f"--user={user}", data, "--skip-test-db"]
        with Path(place, "log").open("w+") as log:
            normal = "--auth-root-authentication-method=normal"
            subprocess.run([*install, normal], stdout=log, stderr=subprocess.STDOUT, check=True)
            own = {"port": str(server.port), "socket": str(server.socket), "pid-file": f"{place}/pid"}
            options = [f"--{name}={value}" for name, value in (_SETTINGS | own).items()]
            command = ["mariadbd", "--no-defaults", f"--user={user}", data, *options]
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            try:
                _wait(process, server, Path(place, "log"))
                yield server
            finally:
                process.terminate()
                process.wait(timeout=60)


def programs_of_mariadb() -> str | None:
    """The folder of the server's programs."""
    return shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")


def _wait(process: subprocess.Popen[bytes], server: MariaDB, log: Path) -> None:
    """Wait until it responds and has its user."""
    begun = time.monotonic()
    while not server.socket.exists():
        is_on_its_way = process.poll() is None and time.monotonic() - begun < _STARTS_WITHIN
        assert is_on_its_way, log.read_text("utf-8")[-2000:]
        time.sleep(0.1)
    account = f"{USER}@'127.0.0.1'"
    server.run(f"CREATE USER {account} IDENTIFIED BY '{USER}'; GRANT ALL ON *.* TO {account};")
