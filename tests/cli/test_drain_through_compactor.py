"""`trimtab drain --through-compactor`: what the DrainOrder says of the login, and when none is created."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cli.test_compactor import NOW
from tests.cli.test_leadership import OURS, lease
from trimtab.cli.drain.through_compactor import create_order
from trimtab.compaction.order.order_object import MAX_GROUP_LENGTH, MAX_GROUPS, OrderSpec
from trimtab.inputs.command_faults import RuntimeFailure
from trimtab.kube.errors import ApiStatus, NotFound


@dataclass
class Server:
    """An API server that knows the login, and that a compactor leads if `age` is small."""

    groups: list[str] = field(default_factory=list)
    name: str = "ann"
    age: int = 5
    created: list[dict[str, Any]] = field(default_factory=list)

    def get(self, path: str, query: Any = None, *, doing: str = "", **_: Any) -> bytes:
        if "/leases/" not in path:
            raise NotFound(doing, 404, ApiStatus(reason="NotFound"))
        return json.dumps(lease(self.age)).encode()

    def write(self, method: str, path: str, body: Any, *, doing: str, **_: Any) -> bytes:
        if "selfsubjectreviews" in path:
            return json.dumps({"status": {"userInfo": {"username": self.name, "groups": self.groups}}}).encode()
        self.created.append(json.loads(json.dumps(body)))
        return b"{}"

    def create(self) -> str:
        return create_order(self, OURS, "kernel", OrderSpec(nodes=("a",), by="-"), NOW)  # type: ignore[arg-type]


def test_an_order_is_in_the_name_of_the_login_with_its_groups() -> None:
    server = Server(["team", "system:authenticated"])
    assert not server.create()
    assert server.created[0]["spec"] == {"nodes": ["a"], "by": "ann", "groups": ["team", "system:authenticated"]}


def test_groups_beyond_the_largest_number_are_counted_and_said() -> None:
    server = Server([f"group-{number}" for number in range(MAX_GROUPS + 3)])
    assert {str(MAX_GROUPS), str(MAX_GROUPS + 3), "3"} <= set(server.create().split())
    assert len(server.created[0]["spec"]["groups"]) == MAX_GROUPS


def test_a_group_with_a_name_that_is_too_long_is_left_out_and_keeps_no_other_out() -> None:
    server = Server(["g" * (MAX_GROUP_LENGTH + 1), *(f"group-{number}" for number in range(MAX_GROUPS))])
    assert {str(MAX_GROUPS), str(MAX_GROUPS + 1), "1"} <= set(server.create().split())
    assert server.created[0]["spec"]["groups"] == server.groups[1:]


@pytest.mark.parametrize("server", [Server(age=10**6), Server(name="")])
def test_without_a_leader_or_a_name_nothing_is_created(server: Server) -> None:
    with pytest.raises(RuntimeFailure):
        server.create()
    assert not server.created
