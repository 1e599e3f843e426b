"""Ed25519 signature of an evidence file, by a key in a file or by a command that has one.

What is signed is the name of the format, a colon, and the hash of the last line of the chain, in ASCII.
"""

from __future__ import annotations

import shlex
import subprocess
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.evidence.chain import FORMAT
from hopwatch.monitor.texts.escaping import escape_line

Signer = Callable[[bytes], bytes]
"""Function that returns the signature of a message, 64 bytes."""

SIGNATURE_BYTES: Final = 64
COMMAND_TIMEOUT_S: Final = 120.0
"""Time that a command has to sign; one may ask a person for a PIN."""


def build_message(head: str) -> bytes:
    """Build the message that is signed for the hash of the last line."""
    return f"{FORMAT}:{head}".encode("ascii")


def load_signer(file: Path) -> Signer:
    """Load a private key from a PEM file (PKCS #8, not encrypted).

    Raises:
        ConfigurationError: the file cannot be read, or holds no such key.
    """
    try:
        key = load_pem_private_key(_read_key(file, "--key"), None)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"--key {file} holds no private key in PEM without a password: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        made = f"openssl genpkey -algorithm ed25519 -out {file.name}"
        raise ConfigurationError(f"--key {file} is a key of another kind, Ed25519 is needed: make one with '{made}'")
    return key.sign


def build_command_signer(command: str) -> Signer:
    """Build a signer that runs a command: the message is its stdin, the signature in base64 its stdout.

    Raises:
        ConfigurationError: the command is no command line.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"--sign-command is no command line: {error}, got {command:.80}") from None
    if not words:
        raise ConfigurationError("--sign-command is empty: give a program that signs what is on its stdin")
    return lambda message: _run_command(words, message)


def load_public_key(file: Path) -> Ed25519PublicKey:
    """Load a public key from a PEM file.

    Raises:
        ConfigurationError: the file cannot be read, or holds no such key.
    """
    try:
        key = load_pem_public_key(_read_key(file, "--public-key"))
    except ValueError as error:
        raise ConfigurationError(f"--public-key {file} holds no public key in PEM: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigurationError(f"--public-key {file} is a key of another kind, Ed25519 is needed")
    return key


def verify_signature(key: Ed25519PublicKey, head: str, signature: bytes) -> bool:
    """Return whether a signature is that of the key for the hash of the last line."""
    try:
        key.verify(signature, build_message(head))
    except InvalidSignature:
        return False
    return True


def decode_signature(text: str | bytes) -> bytes | None:
    """Decode a signature in base64; None if it is none."""
    try:
        found = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return None
    return found if len(found) == SIGNATURE_BYTES else None


def _read_key(file: Path, flag: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{flag} {file} cannot be read: {error.strerror or error}") from None


def _run_command(words: list[str], message: bytes) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command
            words, input=message, capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"--sign-command failed: {error}") from None
    if done.returncode:
        told = escape_line(done.stderr.decode("utf-8", "replace").strip()[-300:]) or "it said nothing on stderr"
        raise ConfigurationError(f"--sign-command ended with {done.returncode}: {told}")
    signature = decode_signature(b"".join(done.stdout.split()))
    if signature is None:
        raise ConfigurationError(
            f"--sign-command writes an Ed25519 signature in base64 to stdout, got {len(done.stdout):,} other bytes"
        )
    return signature
