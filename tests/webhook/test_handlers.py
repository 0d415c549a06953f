"""HTTP's own rules, and the net under the deciding function."""

import json

import pytest

from tests.webhook.worlds import review, service
from webhook.handlers import HttpReply, answer_review


def explode(_: bytes) -> HttpReply:
    raise RuntimeError("secret detail")


def test_h3_an_exception_lets_the_pod_through_unchanged() -> None:
    reply = answer_review(service(mutate=explode), "/mutate", "application/json", review("u-7"))
    response = json.loads(reply.body)["response"]
    assert (reply.status, response["uid"], response["allowed"]) == (200, "u-7", True)
    assert "patch" not in response


def test_h3_an_exception_is_told_once_with_its_path() -> None:
    messages: list[tuple[str, str]] = []
    watched = service(mutate=explode, failed=lambda path, error: messages.append((path, repr(error))))
    answer_review(watched, "/mutate", "application/json", review())
    assert messages == [("/mutate", "RuntimeError('secret detail')")]


def test_what_went_wrong_inside_is_not_told_to_the_caller() -> None:
    assert b"secret" not in answer_review(service(mutate=explode), "/mutate", "application/json", review()).body


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"request":{}}', b'{"request":{"uid":5}}', b"\xff" * 9])
def test_an_exception_over_a_body_without_uid_is_a_400(body: bytes) -> None:
    assert answer_review(service(mutate=explode), "/mutate", "application/json", body).status == 400


def test_deep_nesting_under_a_failing_function_is_answered() -> None:
    body = b'{"a":' * 100_000
    assert answer_review(service(mutate=explode), "/mutate", "application/json", body).status == 400


def test_every_review_is_observed_with_its_status() -> None:
    observations: list[tuple[str, int]] = []
    watched = service(observe=lambda path, status, seconds: observations.append((path, status)))
    answer_review(watched, "/mutate", "application/json", review())
    answer_review(watched, "/validate", "text/plain", review())
    assert observations == [("/mutate", 200), ("/validate", 415)]
