"""The routes around the reviews."""

import pytest

from tests.webhook.worlds import service
from webhook.app import create_app


def test_not_ready_says_why() -> None:
    response = create_app(service(ready=lambda: (False, "no policies yet"))).test_client().get("/readyz")
    assert (response.status_code, response.json) == (503, {"status": "not ready", "reason": "no policies yet"})


def test_a_process_asked_to_stop_is_alive_and_not_ready() -> None:
    actual_service = service()
    actual_service.stop.request_stop()
    client = create_app(actual_service).test_client()
    assert client.get("/readyz").json["status"] == "stopping"
    assert client.get("/healthz").status_code == 200


def test_a_scrape_gets_text() -> None:
    response = create_app(service()).test_client().get("/metrics")
    assert response.content_type.startswith("text/plain; version=0.0.4")
    assert response.data == b"trimtab_up 1\n"


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_a_failing_route_gives_no_traceback(path: str) -> None:
    message: list[str] = []

    def explode() -> bytes:
        raise RuntimeError("secret detail")

    broken = service(metrics=explode, ready=explode, failed=lambda where, error: message.append(where))
    result = create_app(broken).test_client().get(path)
    assert (result.status_code, result.json["error"]) == (500, "internal error")
    assert b"secret" not in result.data
    assert message == [path]
