"""Finds the IP addresses by which this process reaches an API server whose URL names a host."""

import ipaddress
import socket
from urllib.parse import urlsplit

SERVICE_NAME = "kubernetes.default.svc"
"""The name of the API server's Service, whose ClusterIP every pod can reach. On some platforms, such as AKS, the
environment names another host instead of it."""


def find_server_addresses(url: str) -> frozenset[str]:
    """Returns the addresses of the host in the URL, and of the API server's Service where its name has one.

    Raises OSError if the host is a name that has no address.
    """
    host = urlsplit(url).hostname or ""
    if not host:
        return frozenset()
    addresses = _resolve_host(host)
    if any(ipaddress.ip_address(address).is_loopback for address in addresses):
        return addresses
    try:
        return addresses | _resolve_host(SERVICE_NAME)
    except OSError:  # outside of the cluster, the name has no address
        return addresses


def _resolve_host(host: str) -> frozenset[str]:
    """Returns all addresses of a host, without zones. An address is its own."""
    answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return frozenset(str(address[0]).partition("%")[0] for *_, address in answers)
