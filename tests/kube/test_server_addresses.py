"""The addresses of an API server whose URL names a host."""

import socket
from collections.abc import Mapping
from typing import Any

import pytest

from trimtab.kube.server_addresses import SERVICE_NAME, find_server_addresses

AKS = "shop-1.hcp.westeurope.azmk8s.io"


def answer_names(monkeypatch: pytest.MonkeyPatch, names: Mapping[str, tuple[str, ...]]) -> None:
    """Makes these names the only ones that have addresses."""
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: None, **more: Any) -> list[Any]:
        if host in names:
            return [answer for address in names[host] for answer in real(address, port, **more)]
        return real(host, port, flags=socket.AI_NUMERICHOST, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    ("url", "names", "expected"),
    [
        ("https://10.96.0.1:443", {}, {"10.96.0.1"}),
        ("https://[fd00:96::1]:443", {}, {"fd00:96::1"}),
        (f"https://{AKS}:443", {AKS: ("20.0.0.7",), SERVICE_NAME: ("10.0.0.1",)}, {"20.0.0.7", "10.0.0.1"}),
        (f"https://{AKS}", {AKS: ("10.1.0.4", "10.1.0.5", "fd00::4")}, {"10.1.0.4", "10.1.0.5", "fd00::4"}),
        ("https://127.0.0.1:6443", {SERVICE_NAME: ("10.0.0.1",)}, {"127.0.0.1"}),
        ("", {}, set()),
    ],
    ids=["IPv4", "IPv6", "a name and the Service", "several addresses", "loopback", "none"],
)
def test_all_addresses_of_the_host_and_of_the_service_are_returned(
    url: str, names: dict[str, tuple[str, ...]], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, names)
    assert find_server_addresses(url) == expected


def test_a_host_without_an_address_is_an_error_and_not_an_empty_list(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {SERVICE_NAME: ("10.0.0.1",)})
    with pytest.raises(OSError):
        find_server_addresses("https://gone.example:443")
