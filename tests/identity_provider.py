"""A small OpenID Connect provider on this machine: discovery, authorize, token, user info, keys."""

import base64
import hashlib
import html
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "asr-client", "secret of the client"
COOKIE_SECRET = "cookies are signed with these forty letters"
FORGED = RSAKey.generate_key(2048, {"kid": "key-1"}, private=True)


class IdentityProvider:
    """Signs in whoever `person` is; `forge` changes the claims of the token."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.key = RSAKey.generate_key(2048, {"kid": "key-1"}, private=True)
        self.person: dict[str, Any] = {}
        self.user_info: dict[str, Any] = {}
        self.refuses = ""
        self.forge: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.begun: dict[str, dict[str, str]] = {}

    def signed(self, claims: dict[str, Any]) -> str:
        return str(jwt.encode({"alg": "RS256", "kid": "key-1"}, claims, self.key))

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            # As some providers do, those that must not be taken are listed too.
            "id_token_signing_alg_values_supported": ["none", "HS256", "RS256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Return where the browser is sent back to."""
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        if self.refuses:
            back = {"error": self.refuses, "error_description": "<b>words</b>"}
        else:
            code = secrets.token_urlsafe(8)
            self.begun[code] = asked
            back = {"code": code}
        return f"{asked['redirect_uri']}?{urlencode(back | {'state': asked['state']})}"

    def token(self, sent: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET.replace(' ', '+')}".encode())
        plain = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode())
        if authorization.encode() not in (b"Basic " + expected, b"Basic " + plain):
            return 401, {"error": "invalid_client"}
        begun = self.begun.pop(sent.get("code", ""), None)
        if begun is None or begun["redirect_uri"] != sent["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        proof = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(proof).rstrip(b"=").decode() != begun["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300,
            "nonce": begun["nonce"], **self.person,
        }  # fmt: skip
        signed = self.sign(self.forge(claims))
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": signed}

    def secrets_file(self, redirect_uri: str) -> str:
        """Return Streamlit's secrets file for a server."""
        return "[auth]\n" + "".join(
            f"{key} = {json.dumps(value)}\n" for key, value in self.settings(redirect_uri).items()
        )

    def settings(self, redirect_uri: str) -> dict[str, str]:
        return {
            "redirect_uri": redirect_uri,
            "cookie_secret": COOKIE_SECRET,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "server_metadata_url": f"{self.issuer}/.well-known/openid-configuration",
        }


class _Handler(BaseHTTPRequestHandler):
    provider: IdentityProvider

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if asked.path == "/authorize":
            back = html.escape(self.provider.authorize(query))
            self._answer(200, f'<!DOCTYPE html><a href="{back}">Continue</a>'.encode(), "text/html")
            return
        answers = {
            "/.well-known/openid-configuration": self.provider.metadata(),
            "/keys": {"keys": [self.provider.key.as_dict(private=False)]},
            "/userinfo": self.provider.user_info,
        }
        status, content = 200 if asked.path in answers else 404, answers.get(asked.path, {})
        self._answer(status, json.dumps(content).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        status, content = self.provider.token(sent, self.headers.get("authorization", ""))
        self._answer(status, json.dumps(content).encode())

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running_provider(host: str = "127.0.0.1") -> Iterator[IdentityProvider]:
    """Serve a provider on a free port of this machine, by one of its names."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.provider = provider = IdentityProvider(f"http://{host}:{server.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
