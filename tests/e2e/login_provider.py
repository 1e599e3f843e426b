"""An OpenID Connect provider of two people: discovery, authorize, token, keys and end of session, and no more.

It holds its client to what it may ask for: the client's name and secret, the place to come back to, a state, a nonce,
and the verifier of the challenge that it gave (RFC 7636).
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID: Final = "hopwatch"
CLIENT_SECRET: Final = "the-secret-of-the-client"  # noqa: S105 - of a provider that lives as long as a test
PEOPLE: Final = ("on-call@host.example", "guest@other.example")
LIVES_S: Final = 600


@dataclass
class Provider:
    """State of the provider: its key, and the logins that have begun."""

    callback_url: str
    issuer: str = ""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    begun: dict[str, dict[str, str]] = field(default_factory=dict)

    def discovery(self) -> dict[str, Any]:
        """Return what it can do."""
        places = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "jwks_uri": "jwks",
            "end_session_endpoint": "logout",
        }
        return {
            "issuer": self.issuer,
            **{name: f"{self.issuer}/{path}" for name, path in places.items()},
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def people(self, asked: dict[str, str]) -> str:
        """Return a page on which one says who one is."""
        assert (asked["client_id"], asked["redirect_uri"]) == (CLIENT_ID, self.callback_url)
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert {"openid", "email"} <= set(asked["scope"].split())
        links = []
        for email in PEOPLE:
            code = secrets.token_urlsafe()
            self.begun[code] = {**asked, "email": email}
            query = urlencode({"code": code, "state": asked["state"]})
            links.append(f'<a href="{escape(asked["redirect_uri"])}?{query}">{email}</a>')
        return "<h1>Who are you?</h1>" + "<br>".join(links)

    def token(self, sent: dict[str, str], authorization: str) -> dict[str, Any]:
        """Return who somebody is, to the client that began the login and once."""
        asked = self.begun.pop(sent["code"])
        assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"{CLIENT_ID}:{CLIENT_SECRET}"
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        assert (sent["grant_type"], sent["redirect_uri"]) == ("authorization_code", self.callback_url)
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": asked["email"],
            "iat": now,
            "exp": now + LIVES_S,
            "nonce": asked["nonce"],
            "email": asked["email"],
            "email_verified": True,
        }
        told = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "id_token": told}


@contextmanager
def provider(callback_url: str) -> Iterator[str]:
    """Yield the issuer of a provider that sends people back to a place."""
    kept = Provider(callback_url)
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *how: _Handler(kept, *how))
    kept.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield kept.issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, kept: Provider, *how: Any) -> None:  # noqa: ANN401 - the library's
        self.kept = kept
        super().__init__(*how)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path:
            case "/.well-known/openid-configuration":
                self._answer(json.dumps(self.kept.discovery()), "application/json")
            case "/jwks":
                self._answer(json.dumps({"keys": [self.kept.key.as_dict(private=False)]}), "application/json")
            case "/authorize":
                self._answer(self.kept.people(asked), "text/html")
            case "/logout":
                self.send_response(302)
                self.send_header("Location", asked["post_logout_redirect_uri"])
                self.end_headers()
            case _:
                self.send_error(404)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(text).items()}
        self._answer(json.dumps(self.kept.token(sent, self.headers["Authorization"])), "application/json")

    def _answer(self, text: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""
