"""Client of a schema registry, ours or another one with Confluent's API: it fetches the schema that a writer names."""

from __future__ import annotations

import re
import ssl
import time
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import orjson

from hopwatch import __version__
from hopwatch.probes.avro_lint import LintError
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.avro_references import write_out_references
from hopwatch.probes.contract.kafka import read_secret
from hopwatch.probes.contract.limits import MAX_LABEL_CHARS
from hopwatch.probes.deadline_socket import DeadlineSocket

PREFIX: Final = "HOPWATCH_REGISTRY_"
TIMEOUT_S: Final = 5.0
"""Time for one request and its answer."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
LABEL_DIGITS: Final = 12
"""Digits of a fingerprint that name a schema which no registry has."""
MAX_REFERENCES: Final = 64
"""Schemas that one schema refers to, directly or through others."""
_PATH: Final = re.compile(r"[!-~]*")
_SECRETS: Final = ("password", "token")
_NUMBERS: Final = range(1, 2**31)
_UNKNOWN_SCHEMA: Final = 40403
"""Confluent's code for a schema that is not there; its 404 alone may be that of any server."""
_UNKNOWN_PROBLEM: Final = "urn:hopwatch:problem:unknown-schema"
_JSON: Final = "application/vnd.schemaregistry.v1+json"


class RegistryDownError(Exception):
    """The registry gives no usable answer now: ask it again later."""


class UnknownSchemaError(Exception):
    """The registry does not know the schema."""


class ForeignSchemaError(ValueError):
    """The registry knows the schema, and it is none of Avro, or one that is refused."""


class RegistryAnswer(NamedTuple):
    """Answer of a registry."""

    status: int
    body: Any
    """What its JSON says; None if it is none."""


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Access to a registry: name and password, or a token; ``ca_file`` says who signs its certificate."""

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca_file: str = ""

    @property
    def authorization(self) -> str:
        """Value of the header; empty without credentials."""
        if self.token:
            return f"Bearer {self.token}"
        if self.username or self.password:
            return f"Basic {b64encode(f'{self.username}:{self.password}'.encode()).decode()}"
        return ""


def read_registry_access(environ: Mapping[str, str]) -> RegistryAccess:
    """Read the access to a registry from the environment.

    Raises:
        ValueError: a secret is given twice, or in two kinds, or a file with one cannot be read.
    """
    said = {name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
    said |= {secret: read_secret(secret, said, _read_text) for secret in _SECRETS}
    if said["token"] and (said["password"] or said.get("username")):
        raise ValueError(f"{PREFIX}TOKEN and {PREFIX}USERNAME both say who asks: keep one of them")
    for secret in _SECRETS:
        if not said[secret].isprintable():
            raise ValueError(f"{PREFIX}{secret.upper()} is one line of text that can be printed, got something else")
    return RegistryAccess(**{name: said[name] for name in RegistryAccess.__dataclass_fields__ if name in said})


class SchemaRegistry:
    """Schema registry behind a URL; each request has a connection and a deadline of its own."""

    def __init__(self, url: str, access: RegistryAccess, timeout_s: float = TIMEOUT_S) -> None:
        """Take the URL; nothing is connected yet.

        Raises:
            ValueError: it is no such URL, or the authorities of its certificate cannot be read.
        """
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and parts.hostname and _PATH.fullmatch(parts.path)
        if not is_url or parts.username is not None or parts.query or parts.fragment:
            shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            told = f"a registry is http://HOST:PORT or https://HOST:PORT, and its password stands in {PREFIX}PASSWORD"
            raise ValueError(f"{told}; got {shown:.200}")
        self.url, self._timeout_s, self._path = url.rstrip("/"), timeout_s, parts.path.rstrip("/")
        # Without a port http.client would take the last part of an IPv6 address for one.
        self._address = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._headers = {"Accept": f"{_JSON}, application/json", "User-Agent": f"hopwatch/{__version__}"}
        if access.authorization:
            self._headers["Authorization"] = access.authorization
        try:
            self._tls = ssl.create_default_context(cafile=access.ca_file or None) if parts.scheme == "https" else None
        except OSError as error:
            raise ValueError(f"{PREFIX}CA_FILE {access.ca_file} cannot be used: {error}") from None

    def find_schema(self, writer: SchemaRef) -> Any:  # noqa: ANN401 - JSON
        """Return a schema by its fingerprint or its number, as JSON that stands by itself.

        Raises:
            UnknownSchemaError: the registry does not know it.
            RegistryDownError: the registry gives no usable answer.
            ForeignSchemaError: it is none of Avro.
        """
        if isinstance(writer, int) and writer not in _NUMBERS:
            raise UnknownSchemaError(f"the number of a schema is from 1 to {_NUMBERS[-1]}, got {writer}")
        path = f"/schemas/{writer.hex()}" if isinstance(writer, bytes) else f"/schemas/ids/{writer}"
        answer = self.request("GET", path)
        if answer.status == HTTPStatus.NOT_FOUND and _is_unknown(answer.body):
            raise UnknownSchemaError(f"the registry {self.url} has no schema {describe_ref(writer)}")
        return self._write_out(answer, f"the schema {describe_ref(writer)}")

    def find_name(self, writer: SchemaRef) -> str:
        """Return subject and version under which a schema is registered, the first ones by name; else nothing.

        Raises:
            RegistryDownError: the registry does not answer.
        """
        number: object = writer
        if isinstance(writer, bytes):
            told = self.request("GET", f"/schemas/{writer.hex()}").body
            number = told.get("id") if isinstance(told, dict) else None
        if type(number) is not int:
            return ""
        body = self.request("GET", f"/schemas/ids/{number}/versions").body
        places = [_parse_place(one) for one in body] if isinstance(body, list) else []
        return name_version(place for place in places if place is not None)

    def find_version(self, subject: str, version: int) -> Any:  # noqa: ANN401 - JSON
        """Return a version of a subject, whose name is as a URL has it, as JSON that stands by itself.

        Raises:
            RegistryDownError: the registry gives no usable answer.
            ForeignSchemaError: it is none of Avro.
        """
        answer = self.request("GET", f"/subjects/{subject}/versions/{version}")
        return self._write_out(answer, f"version {version} of a subject")

    def request(self, method: str, path: str, body: object = None) -> RegistryAnswer:
        """Send a request, and return the answer.

        Raises:
            RegistryDownError: there is none.
        """
        try:
            status, data = self._exchange(method, path, None if body is None else orjson.dumps(body))
        except TimeoutError:
            raise RegistryDownError(f"the registry {self.url} did not answer within {self._timeout_s:g} s") from None
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RegistryDownError(f"the registry {self.url} does not answer: {_to_line(str(why))}") from None
        if len(data) > MAX_ANSWER_BYTES:
            raise RegistryDownError(f"the registry {self.url} answers with more than {MAX_ANSWER_BYTES:,} bytes")
        try:
            return RegistryAnswer(status, orjson.loads(data))
        except orjson.JSONDecodeError:
            return RegistryAnswer(status, None)

    def build_refusal(self, answer: RegistryAnswer, what: str) -> RegistryDownError:
        """Return the error of an answer that is none to what was asked."""
        told = f"the registry {self.url} answers {answer.status} to {what}"
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return RegistryDownError(f"{told}: check {PREFIX}USERNAME, {PREFIX}PASSWORD and {PREFIX}TOKEN")
        if said := find_message(answer.body):
            return RegistryDownError(f"{told}: {said}")
        return RegistryDownError(f"{told}, and no registry does: check the URL")

    def _write_out(self, answer: RegistryAnswer, what: str) -> Any:  # noqa: ANN401 - JSON
        """Return the schema of an answer with all that it refers to."""
        schema, references = self._read_schema(answer, what)
        try:
            return write_out_references(schema, self._fetch_references(references))
        except LintError as error:
            raise ForeignSchemaError(str(error)) from None

    def _read_schema(self, answer: RegistryAnswer, what: str) -> tuple[Any, list[Any]]:
        """Return a schema, and its references."""
        body = answer.body
        if answer.status != HTTPStatus.OK or not isinstance(body, dict) or "schema" not in body:
            raise self.build_refusal(answer, what)
        if (kind := body.get("schemaType", "AVRO")) != "AVRO":
            raise ForeignSchemaError(f"it is of the kind {_to_line(str(kind))}, and not AVRO")
        said, references = body["schema"], body.get("references") or []
        if not isinstance(references, list):
            raise ForeignSchemaError("its references are no list")
        # Confluent's API has the schema as text, ours by fingerprint as JSON. A text of ours is the name of a type.
        if isinstance(said, str) and "fingerprint" not in body:
            try:
                said = orjson.loads(said)
            except orjson.JSONDecodeError as error:
                raise ForeignSchemaError(f"it is no JSON: {error}") from None
        return said, references

    def _fetch_references(self, references: list[Any]) -> list[Any]:
        """Return all schemas that are referred to, directly or through others."""
        found: dict[tuple[str, int], Any] = {}
        waiting = list(references)
        while waiting:
            subject, version = parse_reference(waiting.pop(0))
            if (subject, version) in found:
                continue
            if len(found) >= MAX_REFERENCES:
                raise ForeignSchemaError(f"it refers to more than {MAX_REFERENCES} schemas")
            answer = self.request("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
            schema, more = self._read_schema(answer, f"version {version} of {_to_line(subject)}, which is referred to")
            found[subject, version] = schema
            waiting += more
        return list(found.values())

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        deadline_s = time.monotonic() + self._timeout_s
        connection: HTTPConnection = (
            HTTPSConnection(*self._address, timeout=self._timeout_s, context=self._tls)
            if self._tls
            else HTTPConnection(*self._address, timeout=self._timeout_s)
        )
        try:
            connection.connect()
            # http.client sends by the first and reads by the second of its methods, and asks for no other.
            connection.sock = DeadlineSocket(connection.sock)
            connection.sock.deadline_s = deadline_s
            headers = self._headers | ({} if body is None else {"Content-Type": _JSON})
            connection.request(method, f"{self._path}{path}", body, headers)
            with connection.getresponse() as response:
                return response.status, response.read(MAX_ANSWER_BYTES + 1)
        finally:
            connection.close()


def name_version(places: Iterable[tuple[str, int]]) -> str:
    """Return the name of a schema by the first of the subjects and versions that have it; nothing without any."""
    subject, version = min(places, default=("", 0))
    end = f"/{version}"
    # Of a long name the version is the part that tells one from the other.
    return subject[: MAX_LABEL_CHARS - len(end)] + end if subject else ""


def name_ref(writer: SchemaRef) -> str:
    """Return the name of a schema that no registry knows: the first digits of its fingerprint, or its number."""
    return describe_ref(writer)[:LABEL_DIGITS] if isinstance(writer, bytes) else f"id {writer}"


def describe_ref(writer: SchemaRef) -> str:
    """Return the name of a schema in words: its fingerprint in hexadecimal digits, or its number."""
    return writer.hex() if isinstance(writer, bytes) else str(writer)


def find_message(body: object) -> str:
    """Return what an error answer says, of Confluent's API or of ours; empty if it says nothing."""
    if not isinstance(body, dict):
        return ""
    said = body.get("message") if "error_code" in body else body.get("detail")
    return _to_line(said) if isinstance(said, str) else ""


def parse_reference(said: object) -> tuple[str, int]:
    """Return subject and version of a schema that another one refers to.

    Raises:
        ForeignSchemaError: it is no reference.
    """
    subject, version = (said.get("subject"), said.get("version")) if isinstance(said, dict) else (None, None)
    if not isinstance(subject, str) or type(version) is not int:
        raise ForeignSchemaError(f"a reference has subject and version, got {said!r:.100}")
    return subject, version


def _parse_place(said: object) -> tuple[str, int] | None:
    subject, version = (said.get("subject"), said.get("version")) if isinstance(said, dict) else (None, None)
    return (subject, version) if isinstance(subject, str) and type(version) is int else None


def _is_unknown(body: object) -> bool:
    if not isinstance(body, dict):
        return False
    return body.get("error_code") == _UNKNOWN_SCHEMA or body.get("type") == _UNKNOWN_PROBLEM


def _to_line(told: str) -> str:
    return "".join(one if one.isprintable() else " " for one in told)[:200]


def _read_text(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "its text is UTF-8"
        raise ValueError(f"the file {file} cannot be read: {why}") from None
