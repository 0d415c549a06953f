"""What is issued is what a strict client accepts."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

import certs
from certs.ca import create_authority, create_serving_pair
from certs.pem_files import names_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_serving_pair_carries_names_and_addresses() -> None:
    pair = create_serving_pair(create_authority(now=NOW), ["trimtab.trimtab.svc", "127.0.0.1", "::1"], now=NOW)
    assert names_of(pair.read_leaf()) == ("trimtab.trimtab.svc", "127.0.0.1", "::1")


def test_an_address_is_an_ip_name_and_not_a_dns_name() -> None:
    leaf = create_serving_pair(create_authority(now=NOW), ["10.0.0.1"], now=NOW).read_leaf()
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.IPAddress(ip_address("10.0.0.1"))]


def test_a_name_given_twice_is_carried_once() -> None:
    assert names_of(create_serving_pair(create_authority(now=NOW), ["a", "a"], now=NOW).read_leaf()) == ("a",)


def test_keys_are_p256() -> None:
    key = create_serving_pair(create_authority(now=NOW), ["a"], now=NOW).read_private_key()
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == "secp256r1"


def test_serial_and_life_are_what_was_asked() -> None:
    leaf = create_serving_pair(create_authority(now=NOW), ["a"], now=NOW, life=timedelta(days=7), serial=77).read_leaf()
    assert (leaf.serial_number, leaf.not_valid_after_utc) == (77, NOW + timedelta(days=7))


def test_a_client_whose_clock_is_a_little_behind_is_served() -> None:
    assert create_authority(now=NOW).read_leaf().not_valid_before_utc == NOW - timedelta(minutes=5)


def test_a_pair_never_outlives_its_authority() -> None:
    ca = create_authority(now=NOW, life=timedelta(days=3))
    assert create_serving_pair(ca, ["a"], now=NOW).read_leaf().not_valid_after_utc == NOW + timedelta(days=3)


def test_an_authority_may_sign_certificates_and_nothing_else() -> None:
    usage = create_authority(now=NOW).read_leaf().extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert not usage.value.digital_signature


def test_a_pair_without_names_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        certs.issue([], now=NOW)


def test_a_key_is_not_in_the_repr_of_anything() -> None:
    folder = certs.issue(["a"], now=NOW)
    assert "PRIVATE" not in repr(folder)


def shake_hands(server: ssl.SSLContext, bundle: bytes, name: str) -> x509.Certificate:
    """A whole handshake in memory, as a strict client does it; the certificate that was served."""
    client = ssl.create_default_context(cadata=bundle.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    # Trust is decided by the bundle's own roots, as the API server's caBundle does.
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=name)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (here, there, here, there):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    served = here.getpeercert(binary_form=True)
    assert served
    return x509.load_der_x509_certificate(served)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_strict_client_accepts_it(tmp_path, name: str) -> None:
    folder = certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC))
    certs.write_folder(tmp_path, folder)
    served = shake_hands(certs.CertificateLoader(tmp_path).front, folder.bundle, name)
    assert served == folder.pair.read_leaf()


@pytest.mark.parametrize("name", ["bad name!", "a..b", "-a.b", "a" * 64, "https://a.b", "1.2.3.4/8", "é.example"])
def test_what_nobody_can_be_called_by_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="neither a DNS name nor an IP address"):
        create_serving_pair(create_authority(now=NOW), [name], now=NOW)


@pytest.mark.parametrize("name", ["a", "*.example.com", "trimtab-webhook.trimtab-system.svc", "x_y.example.com", "::1"])
def test_names_of_services_and_hosts_are_taken(name: str) -> None:
    assert names_of(create_serving_pair(create_authority(now=NOW), [name], now=NOW).read_leaf()) == (name,)
