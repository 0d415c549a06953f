"""Following a cluster: complete only when everything was read, and stopped in good order."""

import time
from collections.abc import Callable

from tests.kube.fake_api import FakeApi
from trimtab.policy.cluster_facts import ALL_KINDS, NO_FACTS
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import Policies
from webhook.policy_state import PolicyStateWatcher, WebhookPolicyState

BASE = WebhookPolicyState(Policies(), NO_FACTS, DEFAULT_SETTINGS)


class Heard:
    """Everything that was told."""

    def __init__(self) -> None:
        self.worlds: list[WebhookPolicyState] = []
        self.errors: list[Exception] = []

    def on_change(self, before: WebhookPolicyState, after: WebhookPolicyState) -> None:
        self.worlds.append(after)

    def on_round(self, live: PolicyStateWatcher) -> None:
        pass

    def on_error(self, what: str, error: Exception) -> None:
        self.errors.append(error)


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def test_nothing_is_known_until_every_list_was_read_and_then_everything() -> None:
    with FakeApi() as api:
        heard = Heard()
        live = PolicyStateWatcher(api.client(), BASE, policies=True, hears=heard)
        assert live.world is BASE
        assert len(live.missing_lists()) > 10
        live.start()
        assert eventually(lambda: live.complete)
        assert live.world.facts.listed_kinds == ALL_KINDS
        assert live.missing_lists() == ()
        live.stop()
    assert heard.errors == []


def test_a_change_makes_a_new_world_and_the_old_one_stays_as_it_was() -> None:
    with FakeApi() as api:
        heard = Heard()
        live = PolicyStateWatcher(api.client(), BASE, policies=True, hears=heard).start()
        assert eventually(lambda: live.complete)
        before = live.world
        api.put("team-a", labels={"team": "a"})
        assert eventually(lambda: "team-a" in live.world.facts.namespaces)
        assert "team-a" not in before.facts.namespaces
        assert heard.worlds[-1] is live.world
        live.stop()
