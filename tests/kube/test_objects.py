"""One whole object: as it came, and back only in place of the version that was read."""

import json
from typing import Any

import pytest

from trimtab.kube import objects
from trimtab.kube.errors import ApiStatus, InvalidResponse, NotFound
from trimtab.kube.objects import Writer


class Remembers:
    """A client that answers with these bytes and remembers what it was asked to write."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.asked: list[tuple[Any, ...]] = []

    def get(self, path: str, *, doing: str) -> bytes:
        self.asked.append(("GET", path))
        if self.answer is None:
            raise NotFound(doing, 404, ApiStatus(code=404))
        return self.answer

    def write(self, method: str, path: str, body: Any, **more: Any) -> bytes:
        self.asked.append((method, path, body, more["query"].get("fieldManager")))
        return b"{}"


def test_an_object_comes_with_everything_it_has() -> None:
    client: Any = Remembers(json.dumps({"metadata": {"name": "s"}, "ours": {"not": 1}}).encode())
    stored_object = objects.get_plain(client, "Secret", "s", "a")
    assert stored_object == {"metadata": {"name": "s"}, "ours": {"not": 1}, "kind": "Secret", "apiVersion": "v1"}
    assert client.asked == [("GET", "/api/v1/namespaces/a/secrets/s")]


def test_what_is_not_there_is_none() -> None:
    client: Any = Remembers(None)
    assert objects.get_plain(client, "MutatingWebhookConfiguration", "trimtab") is None


def test_what_makes_no_sense_is_said_without_its_content() -> None:
    client: Any = Remembers(b'["c2VjcmV0"]')
    with pytest.raises(InvalidResponse, match="read Secret a/s") as caught:
        objects.get_plain(client, "Secret", "s", "a")
    assert "c2VjcmV0" not in str(caught.value)


def test_it_goes_back_under_the_version_it_came_with() -> None:
    client: Any = Remembers(b"{}")
    document = {"kind": "Secret", "metadata": {"name": "s", "namespace": "a", "resourceVersion": "7"}}
    objects.replace_plain(Writer(client=client), document)
    assert client.asked == [("PUT", "/api/v1/namespaces/a/secrets/s", document, "trimtab")]


@pytest.mark.parametrize(("dry_run", "options"), [(False, {}), (True, {"dryRun": ["All"]})])
def test_a_deletion_says_in_its_body_that_it_is_a_dry_run(dry_run: bool, options: dict[str, Any]) -> None:
    """The API server reads no option of a deletion from the query where the request has a body."""
    client: Any = Remembers(b"{}")
    assert objects.delete(Writer(client=client, dry_run=dry_run), "ConfigMap", "c", "a", uid="u")
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}, **options}
    assert client.asked == [("DELETE", "/api/v1/namespaces/a/configmaps/c", body, None)]
