"""The door: one look at a cluster. What cannot be read is named, and the rest is read all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trimtab.cluster.autoscaler import NAME, UPDATED
from trimtab.cluster.autoscaler import read as read_autoscaler
from trimtab.cluster.pool import LABEL as POOL
from trimtab.cluster.pool_file import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.command.doctor import shapes, trials
from trimtab.command.doctor.asking import Asking
from trimtab.command.doctor.rights import needed
from trimtab.command.doctor.seen import Configuration, Home, Process, Read, Scaler, Seen, Standing, Vpa
from trimtab.command.install.names import CONFIGURATION, PROCESSES, SECRET, account
from trimtab.command.install.working import WORKERS
from trimtab.policy import vpa_webhook
from trimtab.policy.subject import DEFAULT_TERMS, OPT_OUT
from trimtab.runtime import clock

if TYPE_CHECKING:
    import certs
    from trimtab.kube.client import Client

T = TypeVar("T")
Processes = Mapping[str, Read[Process | None]]


def look(client: Client, namespace: str, asked_in: str) -> Seen:
    """All of it. Raises Unreachable where there is no API server at all."""
    from trimtab.kube.errors import KubeFault

    asking = Asking(client)
    here = clock.utc()
    greeting = asking.exchange("GET", "/version")
    there = greeting.at

    def read(what: Callable[[], T]) -> Read[T]:
        try:
            return what()
        except KubeFault as error:
            doing, _, problem = str(error).partition(": ")
            return Unreadable(doing, problem)

    door = Door(asking, namespace)
    processes: Processes = {name: read(lambda name=name: door.process(name)) for name in PROCESSES}  # type: ignore[misc]
    mutating = read(door.mutating)
    return Seen(
        namespace=namespace,
        asked_in=asked_in,
        opted_out=read(lambda: door.opted_out(asked_in)),
        here=here,
        there=Unreadable("the API server's time", "it does not say") if there is None else there,
        version=_version(greeting.content),
        home=read(door.home),
        crd=read(lambda: door.made("CustomResourceDefinition", "podpolicies.trimtab.dev", shapes.crd)),
        processes=processes,
        secret=read(door.secret),
        mutating=mutating,
        validating=read(lambda: door.made("ValidatingWebhookConfiguration", CONFIGURATION, shapes.configuration)),
        pod=read(lambda: asking.trial(trials.asking(), asked_in)),
        document=read(lambda: asking.trial(trials.senseless())),
        runtime_class=read(lambda: asking.trial(trials.of_no_class(), asked_in)),
        rights={
            name: read(lambda name=name: door.lacking(name, mutating))  # type: ignore[misc]
            for name, found in processes.items()
            if found is not None
        },
        scaler=read(door.scaler),
        source=read(lambda: asking.usage(door.prometheus(processes["recommender"]))),
        vpa=read(lambda: door.vpa(mutating)),
        leases={name: read(lambda name=name: door.lease(name)) for name in WORKERS},  # type: ignore[misc]
        policies=read(door.policies),
        pools=read(door.pools),
    )


def _version(body: bytes) -> Read[tuple[int, int]]:
    """Managed clusters write a minor of "34+"."""
    try:
        found = msgspec.json.decode(body)
        return int(found["major"]), int(str(found["minor"]).rstrip("+"))
    except (msgspec.DecodeError, KeyError, ValueError, TypeError) as error:
        return Unreadable("/version", f"{type(error).__name__}: {error}")


class Door:
    """What is read, one thing at a time. Everything raises any KubeFault."""

    def __init__(self, asking: Asking, namespace: str) -> None:
        self._asking, self._namespace = asking, namespace

    def made(self, kind: str, name: str, make: Callable[[Mapping[str, Any]], T], namespace: str = "") -> T | None:
        """One object, as `seen` holds it; None where there is none."""
        found = self._asking.one(kind, name, namespace)
        return make(found) if found is not None else None

    def process(self, name: str) -> Process | None:
        return self.made("Deployment", account(name), shapes.process, self._namespace)

    def lease(self, name: str) -> Any:
        return self.made("Lease", account(name), shapes.lease, self._namespace)

    def home(self) -> Home | None:
        from trimtab.cluster.api.meta import Metadata
        from trimtab.cluster.paused import paused

        found = self._asking.one("Namespace", self._namespace)
        return None if found is None else Home(paused=paused(msgspec.convert(found["metadata"], Metadata)))

    def opted_out(self, namespace: str) -> bool:
        labels = (self._asking.one("Namespace", namespace) or {"metadata": {}})["metadata"].get("labels") or {}
        spared = DEFAULT_TERMS.system_namespaces | {self._namespace}
        return labels.get(OPT_OUT) == "true" or namespace in spared

    def secret(self) -> certs.Folder | None:
        from webhook import shared

        return self.made("Secret", SECRET, shared.folder_of, self._namespace)

    def mutating(self) -> tuple[Configuration, ...]:
        found = map(shapes.configuration, self._asking.all("MutatingWebhookConfiguration"))
        return tuple(sorted(found, key=lambda each: each.name))

    def lacking(self, process: str, mutating: Read[tuple[Configuration, ...]]) -> Read[tuple[str, ...]]:
        """The rights that its account has not, in words. Who keeps the pair decides what the webhook needs."""
        if isinstance(mutating, Unreadable) and process == "webhook":
            return mutating
        known = () if isinstance(mutating, Unreadable) else mutating
        theirs = any(each.injected for each in known if each.name == CONFIGURATION)
        rights = needed(process, self._namespace, cert_manager=theirs)
        reviews = [right.review(account(process), self._namespace) for right in rights]
        allowed = self._asking.allowed(reviews)
        return tuple(str(right) for right, may in zip(rights, allowed, strict=True) if not may)

    def scaler(self) -> Scaler:
        status = self._asking.one("ConfigMap", NAME, "kube-system")
        flags = shapes.autoscaler_flags(self._asking.all("Deployment", "kube-system"))
        if status is None:
            return Scaler(told=None, flags=flags)
        updated = (status["metadata"].get("annotations") or {}).get(UPDATED, "")
        return Scaler(told=read_autoscaler((status.get("data") or {}).get("status", ""), updated), flags=flags)

    def prometheus(self, recommender: Read[Process | None]) -> str:
        """Its URL, as the recommender was told; empty where it was told of none."""
        return recommender.settings.get("TRIMTAB_PROMETHEUS", "") if isinstance(recommender, Process) else ""

    def vpa(self, mutating: Read[tuple[Configuration, ...]]) -> Read[Vpa]:
        from trimtab.kube.errors import NotFound
        from trimtab.kube.kinds import PLACES
        from trimtab.kube.listing import listed

        client = self._asking.client
        try:
            client.get(PLACES["VerticalPodAutoscaler"].path, {"limit": 1}, doing="list verticalpodautoscalers")
        except NotFound:
            return Vpa(installed=False, acts=False)
        if isinstance(mutating, Unreadable):
            return mutating
        called = {("", each.name): shapes.vpa(each) for each in mutating}
        slices: dict[vpa_webhook.Key, vpa_webhook.Endpoints] = {}
        for namespace, name in vpa_webhook.services(called):
            place = replace(PLACES["EndpointSlice"], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")
            slices |= {key: vpa_webhook.endpoints(shape) for key, shape in listed(client, place)}
        return Vpa(installed=True, acts=vpa_webhook.acts(called, slices))

    def policies(self) -> tuple[Standing, ...]:
        """None where the kind is not served: `crd` says that."""
        from trimtab.kube.errors import NotFound

        try:
            return tuple(map(shapes.standing, self._asking.all("PodPolicy")))
        except NotFound:
            return ()

    def pools(self) -> PoolReading:
        from trimtab.compactor.sight import pools_of
        from trimtab.kube.kinds import PLACES
        from trimtab.kube.listing import listed

        place = replace(PLACES["ConfigMap"], namespace=self._namespace, labels=POOL)
        return pools_of(shape for _, shape in listed(self._asking.client, place))
