"""API objects as plain values → what `seen` holds of them. Whatever is missing in them has the API's own default."""

import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from trimtab.cluster.autoscaler import flags_of
from trimtab.command.doctor.seen import Configuration, Crd, Hook, Lease, Process, Standing
from trimtab.policy import vpa_webhook
from trimtab.policy.status import HARM_BRAKE, LOADED
from webhook import shared

Plain = Mapping[str, Any]


def process(found: Plain) -> Process:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    variables = [v for c in _containers(found) for v in c.get("env") or ()]
    return Process(
        wanted=spec.get("replicas", 1),
        ready=status.get("readyReplicas", 0),
        settings={v["name"]: v.get("value", "") for v in variables},
    )


def autoscaler_flags(found: Iterable[Plain]) -> dict[str, str] | None:
    """Of the first Deployment that runs a cluster autoscaler; None where none does."""
    for deployment in found:
        for container in _containers(deployment):
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            if "cluster-autoscaler" in " ".join([container.get("image", ""), *words[:1]]):
                return flags_of(word for part in words for word in shlex.split(part))
    return None


def _containers(found: Plain) -> list[Plain]:
    template = (found.get("spec") or {}).get("template") or {}
    return list((template.get("spec") or {}).get("containers") or ())


def configuration(found: Plain) -> Configuration:
    bundles = shared.bundles(found)
    hooks = tuple(_hook(each, bundle) for each, bundle in zip(found.get("webhooks") or (), bundles, strict=True))
    return Configuration(name=found["metadata"]["name"], hooks=hooks, injected=shared.left_alone(found))


def _hook(found: Plain, bundle: bytes) -> Hook:
    service = (found.get("clientConfig") or {}).get("service")
    return Hook(
        name=found["name"],
        place=(service or {}).get("path", ""),
        service=(service["namespace"], service["name"]) if service else None,
        bundle=bundle,
        fails=found.get("failurePolicy", "Fail") == "Fail",
        timeout=found.get("timeoutSeconds", 10),
        again=found.get("reinvocationPolicy", "Never") == "IfNeeded",
        creates_pods=any(map(_creates_pods, found.get("rules") or ())),
        spares=frozenset(_spared(found.get("namespaceSelector") or {})),
    )


def vpa(found: Configuration) -> tuple[vpa_webhook.Called, ...]:
    """The VPA's webhooks in it, nearly always none. What is called by a URL needs no caBundle."""
    return tuple(
        vpa_webhook.Called(hook.service, hook.service is None or bool(hook.bundle))
        for hook in found.hooks
        if hook.name == vpa_webhook.NAME
    )


def _creates_pods(rule: Plain) -> bool:
    return bool(
        {"", "*"} & set(rule.get("apiGroups") or ())
        and {"pods", "*", "*/*"} & set(rule.get("resources") or ())
        and {"CREATE", "*"} & set(rule.get("operations") or ())
    )


def _spared(selector: Plain) -> Iterable[str]:
    for term in selector.get("matchExpressions") or ():
        if (term["key"], term["operator"]) == ("kubernetes.io/metadata.name", "NotIn"):
            yield from term.get("values") or ()


def crd(found: Plain) -> Crd:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return Crd(
        established=any(c["type"] == "Established" and c["status"] == "True" for c in conditions),
        served=frozenset(v["name"] for v in found["spec"]["versions"] if v.get("served")),
    )


def lease(found: Plain) -> Lease:
    spec = found.get("spec") or {}
    renewed = spec.get("renewTime")
    return Lease(
        holder=spec.get("holderIdentity") or "",
        renewed=datetime.fromisoformat(renewed) if renewed else None,
        lasts=spec.get("leaseDurationSeconds") or 0,
    )


def standing(found: Plain) -> Standing:
    meta, status = found["metadata"], found.get("status") or {}
    said = {c["type"]: c for c in status.get("conditions") or ()}
    loaded, brake = said.get(LOADED, {}), said.get(HARM_BRAKE, {})
    return Standing(
        name=meta["name"],
        mode=(found.get("spec") or {}).get("mode", "apply"),
        generation=meta.get("generation", 0),
        observed=status.get("observedGeneration", 0),
        broken=(loaded.get("message") or status.get("lastError", "")) if loaded.get("status") == "False" else "",
        braked=brake.get("message", "") if brake.get("status") == "True" else "",
        last_error=status.get("lastError", ""),
    )
