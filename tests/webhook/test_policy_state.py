"""People are told of each change once, and of each trouble once while it lasts."""

import io
import json
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client import CollectorRegistry

from tests.build import policies, policy
from tests.reasons import has_facts
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import Unreadable
from trimtab.kube.watch_state import WatchSettings
from trimtab.policy.cluster_facts import NO_FACTS
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import Policies
from trimtab.runtime import log
from trimtab.watchdog import process
from webhook.metrics import WebhookMetrics
from webhook.policy_state import LOOK_SECONDS, PATIENCE_SECONDS, STALE_SECONDS, StateLogger, WebhookPolicyState

BASE = WebhookPolicyState(Policies(), NO_FACTS, DEFAULT_SETTINGS)


@dataclass
class Played:
    complete: bool = True
    seconds: float = 0.0
    seconds_since_start: float = 0.0
    trouble: dict[str, str] = field(default_factory=dict)
    broken: tuple[Unreadable, ...] = ()

    def data_age(self) -> float | None:
        return self.seconds

    def missing_lists(self) -> tuple[str, ...]:
        return () if self.complete else ("nodes",)

    def list_errors(self) -> dict[str, str]:
        return self.trouble

    def unreadable_objects(self) -> tuple[Unreadable, ...]:
        return self.broken


class Told:
    def __init__(self) -> None:
        self.out = io.StringIO()
        self.meters = WebhookMetrics(CollectorRegistry())
        self.herald = StateLogger(self.meters, log.build_logger(stream=self.out))

    @property
    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    @property
    def lines(self) -> list[str]:
        return [line["event"] for line in self.said]


def test_policies_that_came_into_force_are_named() -> None:
    log = Told()
    log.herald.on_change(BASE, replace(BASE, policies=policies(policy("{limits: {cpu: remove}}", name="a"))))
    assert [line["policies"] for line in log.said] == [["a"]]


def test_a_broken_policy_is_told_with_the_loaders_words_and_once() -> None:
    log, wrong = Told(), (ConfigError(file="PodPolicy", field="spec.mode", expected="one of apply, warn"),)
    broken = replace(BASE, broken={"a": wrong})
    log.herald.on_change(BASE, broken)
    log.herald.on_change(broken, replace(broken, terms=replace(DEFAULT_SETTINGS, paused=True)))
    rejection, pause = log.lines
    assert has_facts(rejection, "policy rejected", "previous version")
    assert has_facts(pause, "paused", "no pod", "changed")
    assert has_facts(log.out.getvalue(), "spec.mode", "apply, warn")


def test_stale_facts_are_told_once_and_that_they_are_fresh_again() -> None:
    log = Told()
    for seconds in (1.0, STALE_SECONDS + 1, STALE_SECONDS + 9, 2.0, 3.0):
        log.herald.on_round(Played(seconds=seconds))
    outdated, current = log.lines
    assert has_facts(outdated, "view of the cluster", "outdated")
    assert has_facts(current, "view of the cluster", "current again")


def test_a_stream_that_was_given_up_and_the_first_minute_of_the_next_are_not_called_stale() -> None:
    assert min(STALE_SECONDS, process.STALE_SECONDS) > WatchSettings().idle_seconds + 60 + LOOK_SECONDS


def test_what_keeps_it_from_being_ready_is_told_once() -> None:
    log = Told()
    for waited in (0.0, PATIENCE_SECONDS + 1, PATIENCE_SECONDS + 2):
        log.herald.on_round(Played(complete=False, seconds_since_start=waited, trouble={"nodes": "403"}))
    assert log.lines == ["not ready"]
    assert [line["missing"] for line in log.said] == [["nodes"]]


def test_a_mistake_of_ours_is_counted() -> None:
    log = Told()
    log.herald.on_error("ReplicaSet", ValueError("x"))
    assert 'trimtab_errors_total{kind="facts"} 1.0' in log.meters.render_text().decode()


def test_an_object_nobody_can_read_is_told_once() -> None:
    log = Told()
    for _ in range(2):
        log.herald.on_round(Played(broken=(Unreadable("Node n1", "nonsense"),)))
    [line] = log.said
    assert line["where"] == "Node n1"
    assert has_facts(line["event"], "cannot be read", "ignore")
