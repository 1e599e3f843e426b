"""PostgreSQL: one server a run of the tests, which asks for a password; databases come and go with the tests."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import psycopg

USER: Final = "hopwatch"
PASSWORD: Final = "open-sesame-7"  # noqa: S105 - of a server that lives as long as the tests do
PATIENCE_S: Final = 240
_PROGRAMS: Final = "/usr/lib/postgresql"
OWNER: Final = "postgres"
"""Who runs the server when the tests are run by root."""
_EMPTY: Final = """DO $$ DECLARE found text; BEGIN
  FOR found IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', found);
  END LOOP;
END $$;
CREATE SCHEMA public AUTHORIZATION pg_database_owner;
GRANT USAGE ON SCHEMA public TO PUBLIC"""
"""Statements that leave a database as it was made; in one connection, as each one is a process of the server."""
_SETTINGS: Final = "-c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=60 -c max_prepared_transactions=4"


class ServerError(Exception):
    """The server is not installed, or does not start."""


class Postgres:
    """A server of its own in a folder of its own on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        """Make the cluster; the server does not run before :meth:`start`."""
        self.programs = _newest()
        self.folder = Path(tempfile.mkdtemp(prefix="hopwatch-postgres-"))
        self._guard = self._guarded()
        self.port = _free_port()
        self._numbers = itertools.count()
        self._usual: list[str] = []
        self._special: list[str] = []
        self._emptied: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, OWNER, OWNER)
        (self.folder / "password").write_text(PASSWORD)
        (self.folder / "password").chmod(0o644)
        asked = ("-A", "scram-sha-256", f"--pwfile={self.folder}/password", "-U", USER)
        self._run("initdb", "-D", str(self.data), "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", *asked)

    @property
    def data(self) -> Path:
        """The folder of the cluster."""
        return self.folder / "data"

    def start(self) -> None:
        """Start the server; returns when it answers."""
        options = f"-p {self.port} -k {self.folder} {_SETTINGS}"
        self._run("pg_ctl", "-D", str(self.data), "-l", f"{self.folder}/log", "-o", options, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server as a power cut would, or in a milder mode of pg_ctl's."""
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def remove(self) -> None:
        """Stop the server, if it runs, and delete what it kept."""
        self._guard.communicate()

    def _guarded(self) -> subprocess.Popen[bytes]:
        """Start what cleans up when our end of its pipe closes: when we say so, and when we die, however we die."""
        as_owner = f"runuser -u {OWNER} --" if os.geteuid() == 0 else ""
        stop = f"{as_owner} {self.programs}/pg_ctl -D {self.data} -m immediate -w stop"
        script = f"cat > /dev/null; [ -e {self.data}/postmaster.pid ] && {stop}; rm -rf {self.folder}"
        return subprocess.Popen(
            ["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd="/", start_new_session=True
        )

    def url(self, database: str, password: str = PASSWORD) -> str:
        """Return the URL of a database, as [store] url wants it."""
        return f"postgresql+psycopg://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def database(self, options: str = "") -> str:
        """Return the URL of an empty database: one of a test before, emptied, or with options one that is made."""
        if self._emptied and not options:
            name = self._emptied.pop()
        else:
            name = f"store_{next(self._numbers)}"
            self.ask(f"CREATE DATABASE {name} {options}")
        (self._special if options else self._usual).append(name)
        return self.url(name)

    def ask(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as the server's owner and return its rows."""
        where = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": PASSWORD, "dbname": database}
        with psycopg.connect(**where, autocommit=True) as connection:  # type: ignore[arg-type]  # the driver's own stub
            found = connection.execute(statement)
            return list(found.fetchall()) if found.description else []

    def drop_all(self) -> None:
        """Drop every database that was made here, whoever is connected to it."""
        for (name,) in self.ask("SELECT datname FROM pg_database WHERE datname LIKE 'store\\_%'"):
            self.ask(f"DROP DATABASE {name} WITH (FORCE)")
        self._usual, self._special, self._emptied = [], [], []

    def empty_all(self) -> None:
        """Empty every database that was asked for, whoever is connected to it, which is quicker than to make one.

        Those with options are dropped.
        """
        for name in self._special:
            self.ask(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        for name in self._usual:
            self.ask(f"ALTER DATABASE {name} RESET ALL; SELECT pg_terminate_backend(pid) {_connected(name)}")
            self.ask(_EMPTY, name)
        self._usual, self._special, self._emptied = [], [], self._emptied + self._usual

    def end_connections(self, database: str) -> int:
        """End all connections to a database, as an administrator can; return how many there were."""
        return len(self.ask(f"SELECT pg_terminate_backend(pid) {_connected(database)}"))

    def _run(self, program: str, *arguments: str) -> None:
        as_owner = ("runuser", "-u", OWNER, "--") if os.geteuid() == 0 else ()
        command = [*as_owner, str(self.programs / program), *arguments]
        ended = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False
        )
        if ended.returncode:
            raise ServerError(f"{program} ended with {ended.returncode}: {ended.stdout.decode(errors='replace')}")


def _connected(database: str) -> str:
    return f"FROM pg_stat_activity WHERE datname = '{database}'"


def _newest() -> Path:
    """Return the folder of the newest version's programs."""
    found = sorted(Path(_PROGRAMS).glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not found:
        raise ServerError(f"no PostgreSQL server is installed below {_PROGRAMS}: apt-get install postgresql")
    return found[-1].parent


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
