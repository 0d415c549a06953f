"""Where authorities are named, only the API server may send reviews; health and metrics are for everybody."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import certs
from certs.ca import create_authority
from tests.certs.clients import client_pair
from tests.reasons import has_facts
from tests.webhook.asgi_client import ask
from tests.webhook.server import Server, post, serving
from tests.webhook.worlds import review, service
from trimtab.runtime import connection_limits
from webhook.asgi import WebhookASGI

SIGNER = create_authority(now=datetime.now(UTC))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("known")
    (home / "clients.crt").write_bytes(SIGNER.certificate)
    with serving(home, CLIENT_CA_FILE=str(home / "clients.crt"), CLIENT_COMMON_NAME="kube-apiserver") as running:
        yield running


def showing(server: Server, home: Path, pair: certs.KeyPair | None) -> http.client.HTTPSConnection:
    trust = server.trust()
    if pair is not None:
        (home / "client.pem").write_bytes(pair.certificate + pair.key)
        trust.load_cert_chain(home / "client.pem")
    return server.connect(trust=trust)


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_the_api_server_is_answered(server: Server, tmp_path: Path, path: str) -> None:
    connection = showing(server, tmp_path, client_pair(SIGNER, "kube-apiserver"))
    assert post(connection, review(), path)[0] == 200
    connection.close()


@pytest.mark.parametrize("path", ["/mutate", "/validate", "/mutate/", "/nowhere"])
@pytest.mark.parametrize("name", [None, "system:node:n1"])
def test_nobody_else_is(server: Server, tmp_path: Path, path: str, name: str | None) -> None:
    connection = showing(server, tmp_path, client_pair(SIGNER, name) if name else None)
    status, body = post(connection, review(), path)
    assert status == 403
    assert has_facts(json.loads(body)["error"], "only the API server")
    connection.close()


def test_another_authoritys_certificate_ends_the_connection(server: Server, tmp_path: Path) -> None:
    stranger = client_pair(create_authority(now=datetime.now(UTC)), "kube-apiserver")
    connection = showing(server, tmp_path, stranger)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        post(connection, review())
    connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_kubelet_and_a_scraper_need_no_certificate(server: Server, tmp_path: Path, path: str) -> None:
    connection = showing(server, tmp_path, None)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_server_that_tells_nothing_of_its_clients_knows_nobody() -> None:
    heard = ask(WebhookASGI(service(), connection_limits.client_test(None)), "POST", "/mutate", chunks=(review(),))
    assert heard is not None
    assert heard.status == 403


def test_a_refused_stranger_is_counted() -> None:
    observations: list[tuple[str, int]] = []
    watched = service(observe=lambda path, status, seconds: observations.append((path, status)))
    ask(WebhookASGI(watched, connection_limits.client_test(None)), "POST", "/mutate", chunks=(review(),))
    assert observations == [("/mutate", 403)]


def test_what_strangers_make_up_is_no_word_of_the_metrics() -> None:
    paths: list[str] = []
    watched = service(observe=lambda path, status, seconds: paths.append(path))
    for path in ("/made-up", "/mutate/", "/validate"):
        ask(WebhookASGI(watched, connection_limits.client_test(None)), "POST", path, chunks=(review(),))
    assert paths == ["/validate"]


def test_any_name_will_do_where_none_is_asked_for() -> None:
    assert connection_limits.client_test(None)({connection_limits.CLIENT_NAMES_KEY: ("whoever",)})
    assert not connection_limits.client_test("me")({connection_limits.CLIENT_NAMES_KEY: ("whoever",)})
