"""What the compactor reads of DrainOrders, and of what their authors may do, from an API server that is played."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.compaction.order.test_author_policy import stored
from trimtab.compaction.order.order_object import OrderSpec
from trimtab.compactor.order.order_rights import MAX_REVIEWS
from trimtab.compactor.order.order_source import MAX_PAGES, KubeOrderSource
from trimtab.kube.errors import InvalidResponse, KubeFault, refusal_of_response
from trimtab.kube.objects import Writer

SPEC = OrderSpec(by="ann", groups=("team",), nodes=("a", "b"))


@dataclass
class Server:
    """Answers of an API server. `may` says what a review answers, by its resource attributes."""

    pages: list[dict[str, Any]] = field(default_factory=list)
    may: Callable[[Mapping[str, str]], bool] = lambda right: True
    fails: bool = False
    evaluation_error: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    now: float = 0.0
    objects: tuple[dict[str, Any], dict[str, Any]] | None = None

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, doing: str = "") -> bytes:
        if "validatingadmissionpolicies" in path or "validatingadmissionpolicybindings" in path:
            if self.objects is None:
                raise refusal_of_response(doing, 404, b"")
            return json.dumps(self.objects["bindings" in path]).encode()
        if not self.pages:
            raise refusal_of_response(doing, 404, b"")
        return json.dumps(self.pages[int((query or {}).get("continue") or 0)]).encode()

    def write(self, method: str, path: str, body: Any, *, doing: str, **_: Any) -> bytes:
        if self.fails:
            raise KubeFault("no answer")
        self.asked.append(body["spec"])
        status = {"allowed": self.may(body["spec"]["resourceAttributes"]), "evaluationError": self.evaluation_error}
        return json.dumps({"status": status}).encode()

    def source(self) -> KubeOrderSource:
        return KubeOrderSource(Writer(client=self), "ours", None, lambda: self.now)  # type: ignore[arg-type]


def item(name: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"by": "ann", "nodes": ["a"]}}


def test_every_page_of_the_list_is_read() -> None:
    server = Server([{"metadata": {"continue": "1"}, "items": [item("b")]}, {"items": [item("a")]}])
    assert [order.name for order in server.source().list_orders(()).orders] == ["a", "b"]


def test_a_list_without_end_is_no_list() -> None:
    server = Server([{"metadata": {"continue": str(n + 1)}, "items": [item(f"o{n}")]} for n in range(MAX_PAGES + 2)])
    with pytest.raises(InvalidResponse):
        server.source().list_orders(())


def test_a_kind_that_is_not_served_is_not_an_empty_list() -> None:
    assert not Server().source().list_orders(()).is_served
    assert Server([{"items": []}]).source().list_orders(()).is_served


def test_reviews_name_the_author_with_the_groups_of_the_order_alone() -> None:
    server = Server()
    assert server.source().rights_problem(SPEC, ["a"], ["web"], reads=True) is None
    assert {(asked["user"], tuple(asked["groups"])) for asked in server.asked} == {("ann", ("team",))}


def test_without_a_permission_for_all_each_node_and_each_namespace_is_asked() -> None:
    def may(right: Mapping[str, str]) -> bool:
        return right.get("name") == "a" or right.get("namespace") == "web"

    server = Server(may=may)
    assert server.source().rights_problem(SPEC, ["a"], ["web"], reads=False) is None
    for nodes, namespaces in ((["a", "b"], ["web"]), (["a"], ["web", "shop"])):
        problem = server.source().rights_problem(SPEC, nodes, namespaces, reads=False)
        assert problem is not None
        assert problem.code.name == "order-author-not-permitted"


def test_an_author_who_may_not_read_is_not_permitted() -> None:
    server = Server(may=lambda right: right.get("resource") != "poddisruptionbudgets")
    problem = server.source().rights_problem(SPEC, ["a"], ["web"], reads=True)
    assert problem is not None
    assert problem.code.name == "order-author-not-permitted"


def test_a_review_without_an_answer_is_not_known() -> None:
    problem = Server(fails=True).source().rights_problem(SPEC, ["a"], ["web"], reads=False)
    assert problem is not None
    assert problem.code.name == "order-rights-unknown"


def test_a_policy_that_does_not_exist_is_no_error() -> None:
    server = Server()
    assert server.source().read_author_policy().problem
    server.objects = stored()
    assert not server.source().read_author_policy().problem


def test_an_authorizer_that_fails_has_not_denied_anything() -> None:
    server = Server(may=lambda right: False, evaluation_error="webhook: context deadline exceeded")
    reason = server.source().rights_problem(SPEC, ["a"], ["default"], reads=False)
    assert reason is not None
    assert reason.code.name == "order-rights-unknown"


def test_a_denial_with_an_error_counts_after_ten_minutes() -> None:
    """A binding to a role that does not exist any more is denied with an error for ever."""
    server = Server(may=lambda right: False, evaluation_error='clusterrole.rbac.authorization.k8s.io "x" not found')
    source, codes = server.source(), []
    for minute in range(12):
        server.now = 60.0 * minute
        source.begin_round()
        reason = source.rights_problem(SPEC, ["a"], ["web"], reads=False)
        assert reason is not None
        codes.append(reason.code.name)
    assert codes == ["order-rights-unknown"] * 10 + ["order-author-not-permitted"] * 2


def test_an_answer_in_between_begins_the_ten_minutes_again() -> None:
    server = Server(may=lambda right: False, evaluation_error="webhook: context deadline exceeded")
    source = server.source()
    source.rights_problem(SPEC, ["a"], [], reads=False)
    server.now, server.may = 500.0, lambda right: True
    source.begin_round()
    assert source.rights_problem(SPEC, ["a"], [], reads=False) is None
    server.now, server.may = 700.0, lambda right: False
    source.begin_round()
    reason = source.rights_problem(SPEC, ["a"], [], reads=False)
    assert reason is not None
    assert reason.code.name == "order-rights-unknown"


@pytest.mark.parametrize("denied", [{"namespace": "kube-system"}, {"name": "b"}])
def test_a_permission_in_general_stands_for_no_name(denied: Mapping[str, str]) -> None:
    """An authorizer may deny for one namespace or node what it permits in general, such as a webhook."""
    server = Server(may=lambda right: not denied.items() <= right.items())
    problem = server.source().rights_problem(SPEC, ["a", "b"], ["web", "kube-system"], reads=False)
    assert problem is not None
    assert problem.code.name == "order-author-not-permitted"
    assert server.source().rights_problem(SPEC, ["a"], ["web"], reads=True) is None


def test_the_same_is_asked_once_in_a_round() -> None:
    server = Server()
    source = server.source()
    for _ in range(3):
        assert source.rights_problem(SPEC, ["a", "b"], ["web"], reads=True) is None
    asked = len(server.asked)
    assert len({json.dumps(one, sort_keys=True) for one in server.asked}) == asked
    source.begin_round()
    assert source.rights_problem(SPEC, ["a"], [], reads=False) is None
    assert len(server.asked) == asked + 1


def test_reviews_of_a_round_have_a_bound_and_what_is_not_asked_is_not_known() -> None:
    server = Server()
    source = server.source()
    problem = source.rights_problem(SPEC, [f"n{number}" for number in range(MAX_REVIEWS + 1)], [], reads=False)
    assert problem is not None
    assert problem.code.name == "order-rights-unknown"
    assert len(server.asked) == MAX_REVIEWS
    source.begin_round()
    assert source.rights_problem(SPEC, ["a"], [], reads=False) is None


def test_an_author_without_permissions_costs_few_reviews() -> None:
    server = Server(may=lambda right: False)
    assert server.source().rights_problem(SPEC, [f"n{number}" for number in range(500)], ["web"], reads=True)
    assert len(server.asked) < 10


def test_orders_that_have_ended_and_are_not_known_are_left_out_and_their_time_counts() -> None:
    ended = item("old") | {"status": {"phase": "Refused"}}
    ended["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    source = Server([{"items": [ended, item("new")]}]).source()
    listed = source.list_orders(())
    assert [order.name for order in listed.orders] == ["new"]
    assert listed.newest == 1_769_904_000
    assert len(source.list_orders({"u-old"}).orders) == 2


def test_an_author_needs_to_see_nodes_and_pods_before_anything_names_them() -> None:
    assert Server().source().sight_problem(SPEC) is None
    for resource in ("nodes", "pods"):
        problem = Server(may=lambda right, hidden=resource: right["resource"] != hidden).source().sight_problem(SPEC)
        assert problem is not None
        assert problem.code.name == "order-author-not-permitted"
    unknown = Server(fails=True).source().sight_problem(SPEC)
    assert unknown is not None
    assert unknown.code.name == "order-rights-unknown"
