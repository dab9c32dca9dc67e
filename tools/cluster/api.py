"""etcd and kube-apiserver as processes of this machine, and requests to them."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / ".tools" / "bin"
TOKEN = "only-for-this-run"
Object = dict[str, Any]


class RefusedError(Exception):
    """The API server did not take a request; with its sentence."""


class Cluster:
    """An API server and its etcd, in a folder that holds all their files; nothing of it listens beyond loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"https://127.0.0.1:{free_port()}"
        self.kubeconfig = folder / "kubeconfig"
        self.ca = folder / "certificates" / "apiserver.crt"
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    @contextlib.contextmanager
    def running(self) -> Iterator[Cluster]:
        """Starts both, and ends them."""
        store, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        key = self.folder / "accounts.key"
        command = ["openssl", "genrsa", "-out", str(key), "2048"]
        subprocess.run(command, check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        etcd = [
            "etcd", f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}", f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}", "--unsafe-no-fsync",
        ]  # fmt: skip
        server = [
            "kube-apiserver", f"--etcd-servers={store}", "--bind-address=127.0.0.1",
            f"--secure-port={self.url.rpartition(':')[2]}", f"--cert-dir={self.folder / 'certificates'}",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
            f"--token-auth-file={self.folder / 'tokens.csv'}", "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
        ]  # fmt: skip
        with self.program(*etcd), self.program(*server):
            wait(self._ready, "the API server to be ready", 120)
            self._write_kubeconfig()
            yield self

    @contextlib.contextmanager
    def program(self, name: str, *arguments: str, **environment: str) -> Iterator[Path]:
        """A program that was built, as long as it is needed; yields the file that it writes to."""
        log = self.folder / f"{name}.log"
        path = str(BUILT / name) if (BUILT / name).exists() else name
        with log.open("wb") as output:
            process = subprocess.Popen(
                [path, *arguments], stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}
            )
            try:
                yield log
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _ready(self) -> bool:
        try:
            return self.ca.exists() and self.text("GET", "/readyz") == "ok"
        except (OSError, RefusedError):
            return False

    def _write_kubeconfig(self) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
            "current-context": "here",
        }
        self.kubeconfig.write_text(json.dumps(config))

    # ---------------------------------------------------------------------------------------------- requests

    def text(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> str:
        """The answer to a request.

        Raises:
          RefusedError: it is not a success.
        """
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": kind, "Accept": "application/json"},
        )
        context = ssl.create_default_context(cafile=str(self.ca))
        try:
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:
                found: bytes = answer.read()
                return found.decode()
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            with contextlib.suppress(ValueError, KeyError):
                said = json.loads(said)["message"]
            raise RefusedError(f"{error.code}: {said}") from None

    def get(self, path: str) -> Object:
        """An object, or a list of objects."""
        found: Object = json.loads(self.text("GET", path))
        return found

    def apply(self, given: Object, namespace: str) -> Object:
        """Applies an object on the server's side, as strictly as it can; returns what is there now."""
        query = "?fieldManager=jaxobs&force=true&fieldValidation=Strict"
        found: Object = json.loads(
            self.text("PATCH", self.path(given, namespace) + query, given, "application/apply-patch+yaml")
        )
        return found

    def delete(self, given: Object, namespace: str) -> None:
        """Removes an object."""
        self.text("DELETE", self.path(given, namespace))

    def status(self, given: Object, namespace: str, status: Object) -> None:
        """Says what otherwise a kubelet says."""
        path = self.path(given, namespace) + "/status"
        self.text("PATCH", path, {"status": status}, "application/merge-patch+json")

    def knows(self, given: Object) -> bool:
        """Whether the server has an object's kind."""
        version, kind = given["apiVersion"], given["kind"]
        if (version, kind) not in self._plurals:
            with contextlib.suppress(RefusedError):
                for resource in self.get(self._group(version))["resources"]:
                    if "/" not in resource["name"]:
                        self._plurals[version, resource["kind"]] = (resource["name"], resource["namespaced"])
        return (version, kind) in self._plurals

    def path(self, given: Object, namespace: str) -> str:
        """Returns an object's path; `namespace` is for an object that has one and does not say which."""
        if not self.knows(given):
            raise RefusedError(f"the server has no {given['kind']} of {given['apiVersion']}")
        plural, inside = self._plurals[given["apiVersion"], given["kind"]]
        above = f"/namespaces/{given['metadata'].get('namespace', namespace)}" if inside else ""
        return f"{self._group(given['apiVersion'])}{above}/{plural}/{given['metadata']['name']}"

    @staticmethod
    def _group(version: str) -> str:
        return f"/apis/{version}" if "/" in version else f"/api/{version}"


def wait(condition: Any, what: str, seconds: float) -> Any:
    """Waits until a condition returns something true, and returns that.

    Raises:
      TimeoutError: the condition stayed false.
    """
    until = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.3)


def decoded(text: str) -> bytes:
    """A value of a Secret."""
    return base64.b64decode(text)
