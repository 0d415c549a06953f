"""Flask and the direct route give the same status, the same bytes and the same content type."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.asgi_client import ask
from tests.webhook.worlds import review, service
from webhook.app import create_app
from webhook.asgi import WebhookASGI
from webhook.handlers import DeferredReply
from webhook.request_body import MAX_BODY_BYTES, MAX_CHECKED_BYTES


class Case(NamedTuple):
    """A request, and the status both must give."""

    status: int
    method: str = "POST"
    path: str = "/mutate"
    body: bytes = b""
    content_type: str | None = "application/json"


FLASK, ENTRY = create_app(service()).test_client(), WebhookASGI(service())

CASES = {
    "a review": Case(200, body=review()),
    "a review with a charset": Case(200, body=review(), content_type="application/json; charset=utf-8"),
    "a content type in capitals": Case(200, body=review(), content_type="Application/JSON"),
    "a function that raises": Case(200, body=review(name="explode")),
    "a policy": Case(200, path="/validate", body=review()),
    "a policy whose check raises": Case(200, path="/validate", body=review(name="explode")),
    "H1 not JSON": Case(400, body=b"{not json"),
    "H1 nothing": Case(400),
    "H1 wrong type": Case(415, body=review(), content_type="application/yaml"),
    "H1 no type": Case(415, body=review(), content_type=None),
    "H1 a form": Case(415, body=b"a=b", content_type="application/x-www-form-urlencoded"),
    "H1 over the cap": Case(413, body=b" " * (MAX_BODY_BYTES + 1)),
    "H1 a policy over the cap": Case(413, path="/validate", body=b" " * (MAX_CHECKED_BYTES + 1)),
    "H1 a policy far over the cap": Case(413, path="/validate", body=b" " * (MAX_BODY_BYTES + 1)),
    "a policy at the cap": Case(200, path="/validate", body=review() + b" " * (MAX_CHECKED_BYTES - len(review()))),
    "wrong type and over the cap": Case(415, body=b" " * (MAX_BODY_BYTES + 1), content_type="text/plain"),
    "at the cap": Case(200, body=review() + b" " * (MAX_BODY_BYTES - len(review()))),
    "GET of a review path": Case(405, "GET"),
    "PUT of a review path": Case(405, "PUT", body=review()),
    "DELETE of a review path": Case(405, "DELETE", "/validate"),
    "HEAD of a review path": Case(405, "HEAD"),
    "POST of a probe": Case(405, "POST", "/healthz"),
    "an unknown path": Case(404, "GET", "/nowhere"),
    "a review to an unknown path": Case(404, path="/mutate/pods", body=review()),
    "a path with a slash too many": Case(404, path="/mutate/", body=review()),
    "liveness": Case(200, "GET", "/healthz", content_type=None),
    "readiness": Case(200, "GET", "/readyz", content_type=None),
    "a scrape": Case(200, "GET", "/metrics", content_type=None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_both_doors_answer_the_same(case: Case) -> None:
    flask = create_app(service()).test_client()
    slow = flask.open(case.path, method=case.method, data=case.body, content_type=case.content_type)
    direct = ask(WebhookASGI(service()), case.method, case.path, content_type=case.content_type, chunks=(case.body,))
    assert direct is not None
    assert (direct.status, direct.body) == (slow.status_code, slow.data)
    assert direct.headers["content-type"] == slow.headers["Content-Type"]
    assert direct.status == case.status


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_answered_at_once_is_the_same(case: Case) -> None:
    headers = [] if case.content_type is None else [(b"content-type", case.content_type.encode())]
    scope = {"method": case.method, "path": case.path, "headers": headers}
    reply = WebhookASGI(service()).answer_at_once(scope, case.body)
    direct = ask(WebhookASGI(service()), case.method, case.path, content_type=case.content_type, chunks=(case.body,))
    assert direct is not None
    is_pod_review = (case.method, case.path) == ("POST", "/mutate") and len(case.body) <= MAX_BODY_BYTES
    assert (reply is not None) == is_pod_review
    if reply is not None:
        assert (reply.status, reply.body, reply.content_type) == (
            direct.status,
            direct.body,
            direct.headers["content-type"],
        )


def test_nothing_is_answered_at_once_when_the_process_stops_or_the_client_is_unknown() -> None:
    scope = {"method": "POST", "path": "/mutate", "headers": [(b"content-type", b"application/json")]}
    stopping = WebhookASGI(service())
    assert stopping.answer_at_once(scope, review()) is not None
    stopping.drain()
    assert stopping.answer_at_once(scope, review()) is None
    assert WebhookASGI(service(), lambda _: False).answer_at_once(scope, review()) is None
    waiting = WebhookASGI(service(attempt=lambda _: DeferredReply(lambda: False, "shop")))
    assert waiting.answer_at_once(scope, review()) is None


def test_a_body_in_pieces_is_the_same_body() -> None:
    whole = review()
    pieces = tuple(whole[i : i + 7] for i in range(0, len(whole), 7))
    entry = WebhookASGI(service())
    assert ask(entry, "POST", "/mutate", chunks=pieces) == ask(entry, "POST", "/mutate", chunks=(whole,))
    assert ask(entry, "POST", "/validate", chunks=pieces) == ask(entry, "POST", "/validate", chunks=(whole,))


@pytest.mark.parametrize("status", [400, 404, 405, 413, 415])
def test_every_refusal_says_what_was_expected(status: int) -> None:
    case = next(case for case in CASES.values() if case.status == status and case.method == "POST")
    result = (
        create_app(service())
        .test_client()
        .open(case.path, method=case.method, data=case.body, content_type=case.content_type)
    )
    assert result.content_type == "application/json"
    assert result.json["error"]


def test_a_refused_method_names_the_allowed_ones() -> None:
    heard = ask(WebhookASGI(service()), "GET", "/mutate")
    assert heard is not None
    assert "POST" in heard.headers["allow"]


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "PATCH"]),
    path=st.sampled_from(["/mutate", "/validate", "/healthz", "/readyz", "/metrics", "/", "/mutate//x", "/%00"]),
    body=st.binary(max_size=60) | st.builds(review, st.text(max_size=9), name=st.just("explode")),
    content_type=st.none() | st.sampled_from(["application/json", "application/json;", "text/json", "", "\xe4"]),
)
@settings(deadline=None, max_examples=3 * settings().max_examples)
def test_whatever_comes_both_doors_answer_the_same(
    method: str, path: str, body: bytes, content_type: str | None
) -> None:
    result = FLASK.open(path, method=method, data=body, content_type=content_type)
    direct = ask(ENTRY, method, path, content_type=content_type, chunks=(body,))
    assert direct is not None
    assert (direct.status, direct.body) == (result.status_code, result.data)
    assert direct.status < 500
