"""No request goes to a metadata service, to loopback, to the API server, to many machines or to a name."""

import ipaddress

import pytest

from trimtab.metricsapi.pod_addresses import METADATA_SERVICES, AddressRules, build_address_rules

ANY = AddressRules()


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.9",
        "100.64.1.2",
        "100.100.1.2",
        "198.18.0.7",
        "8.8.8.8",
        "fd00::1",
        "fd12:3456:789a::7",
        "2001:db8::1",
        "2600:1f14::1",
    ],
)
def test_a_pod_may_have_any_usual_address(address: str) -> None:
    assert ANY.allows(address)


@pytest.mark.parametrize(
    ("what", "address"),
    [
        ("AWS, Azure, Google Cloud, Oracle, OpenStack", "169.254.169.254"),
        ("AWS, tasks of ECS", "169.254.170.2"),
        ("AWS, EKS Pod Identity", "169.254.170.23"),
        ("AWS over IPv6", "fd00:ec2::254"),
        ("AWS, EKS Pod Identity over IPv6", "fd00:ec2::23"),
        ("Google Cloud over IPv6", "fd20:ce::254"),
        ("Azure, WireServer", "168.63.129.16"),
        ("Alibaba Cloud", "100.100.100.200"),
        ("Tencent Cloud", "169.254.0.23"),
        ("Oracle Cloud Classic", "192.0.0.192"),
        ("Oracle Cloud over IPv6", "fd00:c1::a9fe:a9fe"),
        ("Scaleway", "169.254.42.42"),
        ("Scaleway over IPv6", "fd00:42::42"),
        ("Akamai over IPv6", "fd00:a9fe:a9fe::1"),
        ("OpenStack over IPv6", "fe80::a9fe:a9fe"),
        ("a cloud that follows the same habit", "fd77:7::a9fe:a9fe"),
        ("IPv4-mapped", "::ffff:169.254.169.254"),
        ("IPv4-mapped, a pod's", "::ffff:10.1.2.3"),
        ("IPv4-compatible", "::169.254.169.254"),
        ("NAT64", "64:ff9b::a9fe:a9fe"),
        ("NAT64, a pod's", "64:ff9b::a01:203"),
        ("6to4", "2002:a9fe:a9fe::1"),
        ("Teredo", "2001:0:a9fe:a9fe::1"),
        ("loopback", "127.0.0.1"),
        ("loopback, another one", "127.8.0.9"),
        ("loopback over IPv6", "::1"),
        ("loopback, mapped", "::ffff:127.0.0.1"),
        ("link-local", "fe80::1"),
        ("link-local with a zone", "fe80::1%eth0"),
        ("a pod's address with a zone", "fd00::1%eth0"),
        ("site-local", "fec0::1"),
        ("multicast", "224.0.0.1"),
        ("multicast over IPv6", "ff02::1"),
        ("unspecified", "0.0.0.0"),
        ("this network", "0.1.2.3"),
        ("unspecified over IPv6", "::"),
        ("broadcast", "255.255.255.255"),
        ("nothing", ""),
        ("a name", "localhost"),
        ("a short form", "1.2.3"),
        ("a number", "2130706433"),
        ("leading zeros", "0177.0.0.1"),
    ],
)
def test_no_other_address_is_asked(what: str, address: str) -> None:
    assert not ANY.allows(address), what


def test_no_address_of_a_listed_service_is_asked_even_if_it_is_in_a_network_of_pods() -> None:
    everything = build_address_rules("0.0.0.0/0, ::/0", ())
    services = [ipaddress.ip_network(service.network) for service in METADATA_SERVICES]
    assert [str(network) for network in services if everything.allows(str(network[-1]))] == []
    assert not everything.allows("169.254.169.254")


def test_the_api_server_is_not_asked() -> None:
    rules = build_address_rules("", ["10.96.0.1", "fd00:96::1", "203.0.113.7"])
    asked = ["10.96.0.1", "fd00:96::1", "203.0.113.7", "10.96.0.2"]
    assert [address for address in asked if rules.allows(address)] == ["10.96.0.2"]


def test_beside_an_api_server_on_loopback_its_address_is_no_exception() -> None:
    assert build_address_rules("", ["127.0.0.1"]) == ANY


def test_only_the_networks_of_pods_are_asked_where_they_are_named() -> None:
    rules = build_address_rules("10.8.0.0/14, fd00:8::/48", ())
    addresses = ["10.9.1.2", "10.96.0.1", "192.168.0.1", "fd00:8::7", "fd00:9::7"]
    assert [address for address in addresses if rules.allows(address)] == ["10.9.1.2", "fd00:8::7"]


def test_loopback_is_asked_only_if_it_is_named() -> None:
    assert build_address_rules("127.0.0.0/8", ()).allows("127.0.0.9")
    assert not build_address_rules("10.0.0.0/8", ()).allows("127.0.0.9")


@pytest.mark.parametrize("networks", ["10.8.0.1/14", "pods", "10.8.0.0/14;fd00::/8"])
def test_networks_that_are_not_valid_are_refused(networks: str) -> None:
    with pytest.raises(ValueError):
        build_address_rules(networks, ())
