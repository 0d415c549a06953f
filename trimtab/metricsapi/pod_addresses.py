"""Decides to which addresses of pods a request may be sent.

The address is in the pod's status, which a kubelet writes, so that it may be any address. What no pod can have is
refused by a general sign: networks that are reserved for other purposes (RFC 6890), and IPv6 addresses that contain
an IPv4 address. What a pod could have, but belongs to a service of a cloud, is in METADATA_SERVICES.

The networks are listed here, because the properties of `ipaddress`, such as `is_reserved`, differ between versions of
Python.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class MetadataService:
    """The addresses of a service from which machines of a cloud get their configuration and credentials."""

    cloud: str
    network: str
    source: str


METADATA_SERVICES = (
    MetadataService(
        "AWS (metadata, DNS, time and EKS Pod Identity over IPv6)",
        "fd00:ec2::/32",
        "docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html",
    ),
    MetadataService(
        "Google Cloud over IPv6", "fd20:ce::254/128", "cloud.google.com/compute/docs/metadata/querying-metadata"
    ),
    MetadataService(
        "Azure (WireServer)",
        "168.63.129.16/32",
        "learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16",
    ),
    MetadataService(
        "Alibaba Cloud", "100.100.100.200/32", "alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata"
    ),
    MetadataService(
        "Oracle Cloud over IPv6",
        "fd00:c1::a9fe:a9fe/128",
        "docs.oracle.com/iaas/Content/Compute/Tasks/gettingmetadata.htm",
    ),
    MetadataService("Scaleway over IPv6", "fd00:42::42/128", "scaleway.com/en/docs/instances/how-to/use-metadata-api"),
    MetadataService(
        "Akamai over IPv6", "fd00:a9fe:a9fe::1/128", "techdocs.akamai.com/cloud-computing/docs/metadata-service"
    ),
)
"""Metadata services at addresses that a pod could have. Most others are link-local, such as 169.254.169.254 (AWS,
Azure, DigitalOcean, Google Cloud, Hetzner, OpenStack, Oracle) and 169.254.0.23 (Tencent), and so refused in general."""

_NO_POD = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host, and unspecified
        "127.0.0.0/8",  # loopback: the process itself, and what else runs on its machine
        "169.254.0.0/16",  # link-local: metadata services, node-local DNS
        "192.0.0.0/24",  # IETF protocol assignments; 192.0.0.192 was the metadata service of Oracle Cloud Classic
        "192.88.99.0/24",  # relays from IPv6 to IPv4
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/8",  # unspecified, loopback, IPv4-mapped and IPv4-compatible
        "64:ff9b::/96",  # an IPv4 address behind NAT64
        "64:ff9b:1::/48",  # the same, in a local network
        "100::/64",  # discarded
        "2001::/23",  # IETF protocol assignments, with Teredo
        "2002::/16",  # an IPv4 address behind 6to4
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local
        "ff00::/8",  # multicast
    )
)
_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
_SERVICES = tuple(ipaddress.ip_network(service.network) for service in METADATA_SERVICES)
_METADATA_SUFFIX = 0xA9FEA9FE
"""169.254.169.254 as the lowest 32 bits of an IPv6 address, by which several clouds form the address of the service."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """To which addresses of pods this process may send requests."""

    networks: tuple[Network, ...] = ()
    """The networks of pods. If there are any, no other address is allowed, and loopback only if one of them has it."""
    api_server: frozenset[Address] = frozenset()
    """The addresses by which this process reaches the API server."""

    def allows(self, text: str) -> bool:
        """Returns whether a request may be sent to this address of a pod.

        It may, if all of these hold: it is an IPv4 or IPv6 address without a zone; it is no address of the API server;
        it is in one of the networks of pods, if these are known; it is in no network that is reserved for another
        purpose, unless it is loopback and in one of the networks of pods; it belongs to no metadata service of a cloud.
        """
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and (
            address.scope_id is not None or int(address) & 0xFFFFFFFF == _METADATA_SUFFIX
        ):
            return False
        # A network of the other version contains no address.
        is_named = any(address in network for network in self.networks)
        is_special = any(address in network for network in (*_NO_POD, *_SERVICES))
        is_loopback = any(address in network for network in _LOOPBACK)
        return (
            address not in self.api_server
            and (is_named or not self.networks)
            and (not is_special or (is_loopback and is_named))
        )


def build_address_rules(networks: str, api_server: Iterable[str]) -> AddressRules:
    """Returns the rules for networks, separated by commas, and the addresses of the API server. Raises ValueError if a
    network or an address is not valid."""
    named = tuple(ipaddress.ip_network(text.strip()) for text in networks.split(",") if text.strip())
    addresses = frozenset(ipaddress.ip_address(text) for text in api_server)
    # Beside an API server on loopback, as on a developer's machine, pods are on loopback as well.
    return AddressRules(named, frozenset(address for address in addresses if not address.is_loopback))
