"""Services for tests: the functions behind the routes, made of three lines each."""

import json
from typing import Any

from webhook.handlers import HttpReply, Service


def review(uid: str = "u-1", **request: Any) -> bytes:
    """An AdmissionReview as the API server sends it, as far as the edge looks at it."""
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": uid, **request}}
    return json.dumps(body).encode()


def admitted(body: bytes) -> HttpReply:
    """Allow everything that can be read; answer 400 to the rest. Raises when the review asks for it."""
    try:
        request = json.loads(body)["request"]
    except (ValueError, KeyError, TypeError):
        return HttpReply(400, b'{"error":"not a review"}')
    if request.get("name") == "explode":
        raise RuntimeError("as asked")
    response = {"uid": request["uid"], "allowed": True}
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return HttpReply(200, json.dumps(answer).encode())


def service(**changed: Any) -> Service:
    """A service that admits everything, with what the test changes."""
    values: dict[str, Any] = {
        "mutate": admitted,
        "validate": admitted,
        "ready": lambda: (True, "all facts are here"),
        "metrics": lambda: b"trimtab_up 1\n",
    }
    return Service(**{**values, **changed})
