"""Tests of files for TLS: what is wrong with ones that can be read."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from hopwatch.probes.http.granian_server import Tls
from tests.support.certificates import bad_certificates

DAY_S = 86_400


def test_what_clients_would_refuse_and_what_all_may_read_is_told(tmp_path: Path) -> None:
    """An expired certificate, one that expires soon, and a world-readable key are described."""
    bad_certificates(tmp_path)

    def flaw(name: str, now_s: float) -> str:
        return Tls(tmp_path / f"{name}.pem", tmp_path / f"{name}.key").describe_flaw(now_s)

    now_s = time.time()
    told = f"the certificate {tmp_path}"
    assert flaw("server", now_s - 30 * DAY_S) == ""
    assert flaw("server", now_s).startswith(f"{told}/server.pem expires in 2.0 days: put a new one there")
    refused = "is refused by clients"
    assert flaw("expired", now_s) == f"{told}/expired.pem {refused}: certificate has expired: put a good one there"
    assert flaw("early", now_s) == f"{told}/early.pem {refused}: certificate is not yet valid: put a good one there"
    key = f"the key {tmp_path}/server.key can be read by every user of this machine: chmod o-r it"
    (tmp_path / "server.key").chmod(0o644)
    assert flaw("server", now_s - 30 * DAY_S) == key
    assert flaw("server", now_s).startswith(f"{told}/server.pem expires in 2.0 days: ")
    assert flaw("server", now_s).endswith(f"; {key}")


@pytest.mark.parametrize("error", [ssl.SSLError("NO_SHARED_CIPHER"), UnicodeDecodeError("utf-8", b"\xfc", 0, 1, "odd")])
def test_a_certificate_that_cannot_be_looked_at_has_no_flaw(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A curve that Python does not offer, a name that is no UTF-8: the server may take them all the same."""
    bad_certificates(tmp_path)

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("hopwatch.probes.http.granian_server._read_certificate", refuse)
    assert Tls(tmp_path / "server.pem", tmp_path / "server.key").describe_flaw(time.time()) == ""
