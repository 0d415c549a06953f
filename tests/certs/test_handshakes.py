"""Who may connect, and how: whole handshakes in memory, with clients as old and as strange as they come."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

import certs
from certs.ca import create_authority
from tests.certs.clients import client_pair

NOW = datetime.now(UTC)
V12 = ssl.TLSVersion.TLSv1_2
AUTHENTICATED = {
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
}


class World:
    """A folder with a pair, and clients that trust it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = certs.issue(["localhost"], now=NOW)
        certs.write_folder(path / "certs", self.folder)
        self.authority = create_authority(now=NOW)
        self.clients = path / "clients.crt"
        self.clients.write_bytes(self.authority.certificate)

    def server(self, *, asks: bool = False) -> certs.CertificateLoader:
        return certs.CertificateLoader(self.path / "certs", clients=self.clients if asks else None)

    def client(self, ciphers: str = "", version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        item = ssl.create_default_context(cadata=self.folder.bundle.decode())
        item.verify_flags &= ~ssl.VERIFY_X509_STRICT  # what is tried here is the server's strictness
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # to offer what is old is what this is for
            if version is not None:
                item.minimum_version = item.maximum_version = version
        if ciphers:
            item.set_ciphers(f"{ciphers}:@SECLEVEL=0")
        return item

    def with_certificate(self, pair: certs.KeyPair) -> ssl.SSLContext:
        ssl_context = self.client()
        holding = self.path / "client.pem"
        holding.write_bytes(pair.certificate + pair.key)
        ssl_context.load_cert_chain(holding)
        return ssl_context


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The server's side of a whole handshake. Raises ssl.SSLError where either refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    there = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for side in (here, there, here, there, here):
        try:
            side.do_handshake()
            done.add(side)
        except ssl.SSLWantReadError:
            continue
    assert done == {here, there}
    return there


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_nothing_below_tls_1_2_is_spoken(world: World, version: ssl.TLSVersion) -> None:
    with pytest.raises(ssl.SSLError):
        shaken(world.server().front, world.client("ALL", version))


@pytest.mark.parametrize("version", [V12, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken(world: World, version: ssl.TLSVersion) -> None:
    assert shaken(world.server().front, world.client(version=version)).version() == version.name.replace("_", ".")


def offered() -> list[str]:
    """Every cipher of TLS 1.2 and below that this OpenSSL can offer."""
    with_all = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with_all.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    return [cipher["name"] for cipher in with_all.get_ciphers() if cipher["protocol"] != "TLSv1.3"]


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
def test_of_all_ciphers_only_authenticated_ones_with_fresh_keys_are_taken(world: World, kind: str) -> None:
    if kind == "rsa":
        _serve_rsa(world)
    server, names = world.server().front, set()
    for name in offered():
        try:
            names.add(shaken(server, world.client(name, V12)).cipher()[0])  # type: ignore[index]
        except ssl.SSLError:
            continue
    assert names == {name for name in AUTHENTICATED if f"-{kind.upper()}-" in name}


@pytest.mark.parametrize(
    "name", ["AES128-SHA", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256", "ADH-AES128-SHA"]
)
def test_weak_ciphers_could_have_been_offered(name: str) -> None:
    assert name in offered()


def _serve_rsa(world: World) -> None:
    """As another issuer's pair may be: RSA, self-signed."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    item = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW - timedelta(1))
        .not_valid_after(NOW + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = item.public_bytes(serialization.Encoding.PEM)
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (world.path / "certs" / "tls.crt").write_bytes(pem)
    (world.path / "certs" / "tls.key").write_bytes(plain)
    world.folder = certs.CertificateFiles(bundle=pem, pair=certs.KeyPair(certificate=pem, key=plain))


def test_nobody_is_asked_for_a_certificate_unless_authorities_are_named(world: World) -> None:
    other = world.with_certificate(client_pair(create_authority(now=NOW), "anybody"))
    assert not shaken(world.server().front, other).getpeercert()


def test_who_shows_none_is_let_in_for_the_pages_and_is_nobody(world: World) -> None:
    assert not shaken(world.server(asks=True).front, world.client()).getpeercert()


def test_who_shows_a_good_one_is_known_by_its_name(world: World) -> None:
    shown = shaken(world.server(asks=True).front, world.with_certificate(client_pair(world.authority, "apiserver")))
    assert (("commonName", "apiserver"),) in shown.getpeercert()["subject"]  # type: ignore[index]


@pytest.mark.parametrize(
    "pair",
    [
        lambda world: client_pair(create_authority(now=NOW), "apiserver"),
        lambda world: client_pair(world.authority, "apiserver", until=NOW - timedelta(minutes=1)),
        lambda world: client_pair(world.authority, "apiserver", use=ExtendedKeyUsageOID.SERVER_AUTH),
    ],
    ids=["of another authority", "expired", "for servers"],
)
def test_a_bad_certificate_is_refused_in_the_handshake(world: World, pair: Callable[[World], certs.KeyPair]) -> None:
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shaken(world.server(asks=True).front, world.with_certificate(pair(world)))


def test_new_authorities_count_from_the_next_connection_on(world: World) -> None:
    loader, second = world.server(asks=True), create_authority(now=NOW)
    client = world.with_certificate(client_pair(second, "apiserver"))
    world.clients.write_bytes(world.authority.certificate + second.certificate)
    assert shaken(loader.front, client).getpeercert()
    world.clients.write_bytes(b"no longer PEM")
    assert shaken(loader.front, client).getpeercert(), "what was good stays in force"


@pytest.mark.parametrize("content", [None, b"", b"no PEM"])
def test_a_new_pair_does_not_wait_for_authorities_that_are_no_good(world: World, content: bytes | None) -> None:
    problems: list[certs.Problem | None] = []
    loader = certs.CertificateLoader(world.path / "certs", problems.append, world.clients)
    client = client_pair(world.authority, "apiserver")
    world.clients.unlink()
    if content is not None:
        world.clients.write_bytes(content)
    world.folder = certs.issue(["localhost"], now=NOW)
    certs.write_folder(world.path / "certs", world.folder)
    assert shaken(loader.front, world.with_certificate(client)).getpeercert()
    assert [problem.code for problem in problems if problem] == [
        "missing" if content is None else "unusable-authorities"
    ]
    world.clients.write_bytes(world.authority.certificate)
    assert shaken(loader.front, world.with_certificate(client)).getpeercert()
    assert problems[-1] is None


@pytest.mark.parametrize(
    ("content", "error"), [(None, certs.MissingFile), (b"", certs.UnusableFile), (b"x", certs.UnusableFile)]
)
def test_a_server_does_not_start_without_the_authorities_it_was_told_of(
    world: World, content: bytes | None, error: type[certs.CertsError]
) -> None:
    world.clients.unlink()
    if content is not None:
        world.clients.write_bytes(content)
    with pytest.raises(error):
        world.server(asks=True)
