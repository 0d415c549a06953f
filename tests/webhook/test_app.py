"""The routes around the reviews."""

import pytest

from tests.webhook.worlds import service
from webhook.app import create_app


def test_not_ready_says_why() -> None:
    found = create_app(service(ready=lambda: (False, "no policies yet"))).test_client().get("/readyz")
    assert (found.status_code, found.json) == (503, {"status": "not ready", "reason": "no policies yet"})


def test_a_process_asked_to_stop_is_alive_and_not_ready() -> None:
    asked = service()
    asked.stop.request_stop()
    client = create_app(asked).test_client()
    assert client.get("/readyz").json["status"] == "stopping"
    assert client.get("/healthz").status_code == 200


def test_a_scrape_gets_text() -> None:
    found = create_app(service()).test_client().get("/metrics")
    assert found.content_type.startswith("text/plain; version=0.0.4")
    assert found.data == b"trimtab_up 1\n"


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_a_failing_route_gives_no_traceback(path: str) -> None:
    told: list[str] = []

    def explode() -> bytes:
        raise RuntimeError("secret detail")

    broken = service(metrics=explode, ready=explode, failed=lambda where, error: told.append(where))
    found = create_app(broken).test_client().get(path)
    assert (found.status_code, found.json["error"]) == (500, "internal error")
    assert b"secret" not in found.data
    assert told == [path]
