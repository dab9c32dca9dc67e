"""Certificates for tests, made by `openssl` each time: an authority, servers and clients that it vouches for."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers.requirements import program


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; lives in a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._openssl = program("openssl")
        self.certificate = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        self._run(
            "req", "-x509", *_ELLIPTIC, "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", self._key,
            "-out", self.certificate, "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    def _run(self, *arguments: str | Path) -> None:
        subprocess.run([self._openssl, *map(str, arguments)], check=True, capture_output=True, timeout=120)

    def sign(self, name: str, alternatives: str = "DNS:localhost,IP:127.0.0.1") -> Pair:
        """A certificate for a server or client that can be reached by these names."""
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternatives}\nbasicConstraints=CA:FALSE\n")
        self._run("req", "-new", *_ELLIPTIC, "-nodes", "-subj", f"/CN={name}", "-keyout", pair.key, "-out", request)
        self._run(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
            "-days", "2", "-extfile", extensions, "-out", pair.certificate,
        )  # fmt: skip
        return pair

    def encrypted(self, pair: Pair) -> Path:
        """The key of a pair with a passphrase on it."""
        path = pair.key.with_suffix(".encrypted")
        self._run("ec", "-in", pair.key, "-aes256", "-passout", "pass:secret", "-out", path)
        return path


_ELLIPTIC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
