"""A World made of what was seen in the cluster, change by change. No thread, no clock, no API server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.kube.kinds import PLACES, Source
from trimtab.kube.state import Change, What
from trimtab.policy import vpa_webhook
from trimtab.policy.facts import EVERYTHING
from trimtab.policy.gathering import Gathering
from trimtab.policy.held import OWNERS, Hold, holds
from trimtab.policy.standing import Standing, load_object
from trimtab.policy.vpa_webhook import Called, Endpoints, Service
from webhook.world import World

Key = tuple[str, str]

CONFIGURATION, SLICE, POLICY = "MutatingWebhookConfiguration", "EndpointSlice", "PodPolicy"


def sources(own_namespace: str, *, policies: bool) -> tuple[Source, ...]:
    """Every list that is watched from the start, with the cluster's policies or without. No pods.

    Of owners only the metadata is asked for, of ConfigMaps only our own recommendations.
    """
    whole = [PLACES[kind] for kind in sorted(EVERYTHING)] + [PLACES[CONFIGURATION]]
    owners = [_slim(PLACES[kind]) for kind in OWNERS]
    shards = Source(
        kind="ConfigMap", group_version="v1", plural="configmaps", namespace=own_namespace,
        labels=f"{RECOMMENDATIONS}=v1",
    )  # fmt: skip
    return (*whole, *owners, shards, *([PLACES[POLICY]] if policies else []))


def _slim(source: Source) -> Source:
    return replace(source, slim=True)


def slices(service: Service) -> Source:
    """The endpoints of one Service."""
    namespace, name = service
    return replace(PLACES[SLICE], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")


def held(own_namespace: str) -> Mapping[str, Hold]:
    """Kind → what is held of its objects."""
    return {
        **holds(own_namespace),
        CONFIGURATION: vpa_webhook.called,
        SLICE: vpa_webhook.endpoints,
        POLICY: load_object,
    }


class Seen:
    """Told of changes, it gives the World as it is now. Not for two threads."""

    def __init__(self, base: World, *, policies: bool) -> None:
        """`base` has the terms, and the policies where they do not come from the cluster."""
        self._world = base
        self._base = base
        self._from_cluster = policies
        self._gathering = Gathering(base.terms.own_namespace)
        self._standing = Standing()
        self._configurations: dict[Key, tuple[Called, ...]] = {}
        self._slices: dict[Key, Endpoints] = {}

    def hear(self, change: Change[Any]) -> None:
        """Something came, changed or went."""
        gone = change.what is What.DELETED
        if change.kind == POLICY:
            self._policy(change.key[1], change.after, gone)
        elif change.kind == CONFIGURATION:
            _keep(self._configurations, change, gone)
        elif change.kind == SLICE:
            _keep(self._slices, change, gone)
        elif gone:
            self._gathering.drop(change.kind, change.key)
        else:
            self._gathering.put(change.kind, change.key, change.after)

    def _policy(self, name: str, after: Any, gone: bool) -> None:
        if gone:
            self._standing.drop(name)
        else:
            self._standing.put(name, after)

    @property
    def services(self) -> frozenset[Service]:
        """Whose endpoints must be watched to know whether the VPA's webhook can act."""
        return vpa_webhook.services(self._configurations)

    def forget_slices(self) -> None:
        """Others are watched from now on."""
        self._slices.clear()

    def world(self) -> World:
        """Everything as it is now; the same object as last time where nothing differs."""
        facts = self._gathering.facts(vpa_acts=vpa_webhook.acts(self._configurations, self._slices))
        terms, paused = self._world.terms, self._base.terms.paused or self._gathering.paused
        if paused is not terms.paused:
            terms = replace(terms, paused=paused)
        policies = self._standing.policies() if self._from_cluster else self._base.policies
        found = World(policies, facts, terms, self._standing.broken())
        if not _same(self._world, found):
            self._world = found
        return self._world


def _keep(into: dict[Key, Any], change: Change[Any], gone: bool) -> None:
    if gone:
        into.pop(change.key, None)
    else:
        into[change.key] = change.after


def _same(a: World, b: World) -> bool:
    return a.policies is b.policies and a.facts is b.facts and a.terms is b.terms and a.broken is b.broken
