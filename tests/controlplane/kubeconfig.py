"""A kubeconfig as a file, written for our own clusters and read for somebody's."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.certificates import Pair


def write(path: Path, server: str, authority: Path, user: str, client: Pair) -> Path:
    """One context, every certificate inside: the file can be carried elsewhere."""
    login = {"client-certificate-data": _data(client.certificate), "client-key-data": _data(client.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        "clusters": [
            {"name": "testbed", "cluster": {"server": server, "certificate-authority-data": _data(authority)}}
        ],
        "users": [{"name": user, "user": login}],
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        yaml.safe_dump(document, out)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a plain HTTPS client needs. Contents, not paths; None where the kubeconfig says nothing of it."""

    server: str
    authority: bytes | None
    certificate: bytes | None
    key: bytes | None
    token: str | None


def read(path: Path) -> Access:
    """The current context, by client certificate or token. A login by another program is refused."""
    document = yaml.safe_load(path.read_text())
    context = _named(document, "contexts", document["current-context"])["context"]
    cluster = _named(document, "clusters", context["cluster"])["cluster"]
    user = _named(document, "users", context["user"])["user"]
    if "exec" in user or "auth-provider" in user:
        raise ValueError(
            f"{path}: user {context['user']} logs in by another program; give one with a certificate or token"
        )
    return Access(
        server=cluster["server"].rstrip("/"),
        authority=_content(path, cluster, "certificate-authority"),
        certificate=_content(path, user, "client-certificate"),
        key=_content(path, user, "client-key"),
        token=user.get("token"),
    )


def _named(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    actual_entry: dict[str, Any] = next(entry for entry in document[kind] if entry["name"] == name)
    return actual_entry


def _content(path: Path, entry: dict[str, Any], field: str) -> bytes | None:
    if f"{field}-data" in entry:
        return base64.b64decode(entry[f"{field}-data"])
    return (path.parent / entry[field]).read_bytes() if field in entry else None


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
