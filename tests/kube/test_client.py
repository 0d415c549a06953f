"""Is an authority without keyUsage trusted, as Go trusts it, and nothing else more than before?"""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trimtab.kube.client import connect_to_cluster
from trimtab.kube.errors import NotConfigured, Unreachable


def pem(folder: Path, name: str, signer: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """A certificate as clusters made them long ago: an authority with no extension but basicConstraints."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    issuer, signing = (signer[0].subject, signer[1]) if signer else (subject, key)
    certificate_builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
    )
    if signer:
        certificate_builder = certificate_builder.add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
    certificate = certificate_builder.sign(signing, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, key


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    authority = pem(tmp_path, "ca", None)
    pem(tmp_path, "server", authority)
    pem(tmp_path, "stranger", None)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


class Hello(BaseHTTPRequestHandler):
    def handle(self) -> None:
        with suppress(ssl.SSLError):  # who doesn't trust us says so, and goes
            super().handle()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def kubeconfig(folder: Path, server: str, authority: str) -> str:
    cluster = {"server": server, "certificate-authority": str(folder / f"{authority}.crt")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
    }
    path = folder / f"{authority}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_an_authority_without_key_usage_is_trusted(server: str, tmp_path: Path) -> None:
    client = connect_to_cluster(kubeconfig(tmp_path, server, "ca"))
    assert client.get("/version") == b"ok"
    client.close()


def test_another_authority_is_not(server: str, tmp_path: Path) -> None:
    client = connect_to_cluster(kubeconfig(tmp_path, server, "stranger"))
    with pytest.raises(Unreachable, match=r"get the version: .*CERTIFICATE_VERIFY_FAILED"):
        client.get("/version", doing="get the version")
    client.close()


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="nowhere"):
        connect_to_cluster(str(tmp_path / "nowhere"))


def test_a_context_that_is_not_there_is_named(server: str, tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match='the context "other" does not exist; the kubeconfig has c'):
        connect_to_cluster(kubeconfig(tmp_path, server, "ca"), "other")
