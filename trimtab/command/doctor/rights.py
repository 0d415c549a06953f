"""What must the processes' accounts be allowed? Exactly what `trimtab install` grants them, right by right."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.command.install.rbac import CLUSTER, OWN, Rule, held


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One verb on one resource."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    """Empty is the whole cluster."""

    def __str__(self) -> str:
        what = "/".join(part for part in (self.resource, self.subresource) if part)
        which = f" {self.name}" if self.name else ""
        return f"{self.verb} {what}{f'.{self.group}' if self.group else ''}{which}"

    def review(self, user: str, namespace: str) -> dict[str, Any]:
        """The question whether a service account of this namespace has it."""
        attributes = {
            "verb": self.verb, "group": self.group, "resource": self.resource, "subresource": self.subresource,
            "name": self.name, "namespace": self.namespace,
        }  # fmt: skip
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec = {
            "user": f"system:serviceaccount:{namespace}:{user}", "groups": groups,
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        }  # fmt: skip
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def needed(process: str, namespace: str, *, cert_manager: bool) -> tuple[Right, ...]:
    """By the process's account, where cert-manager keeps the pair and the caBundles, or where we do."""
    places = ((CLUSTER[process], ""), (OWN[process], namespace))
    rules = ((rule, place) for granted, place in places for rule in held(granted, cert_manager=cert_manager))
    return tuple(dict.fromkeys(right for rule, place in rules for right in _of(rule, place)))


def _of(rule: Rule, namespace: str) -> Iterator[Right]:
    for resource in rule.resources:
        kind, _, sub = resource.partition("/")
        for verb in rule.verbs:
            for name in rule.names or ("",):
                yield Right(verb=verb, group=rule.group, resource=kind, subresource=sub, name=name, namespace=namespace)
