"""What was granted to our accounts, and what they used of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.controlplane.rights import Used
from trimtab.cluster.processes import account_name
from trimtab.installation.access_rule import Rule
from trimtab.installation.installed_processes import CLUSTER_RULES, NAMESPACE_RULES

ACCOUNTS = {account_name(name): name for name in CLUSTER_RULES}


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource."""

    process: str
    verb: str
    group: str
    resource: str
    own: bool
    """Granted in our namespace alone."""

    def __str__(self) -> str:
        where = " in our namespace" if self.own else ""
        return f"{self.process}: {self.verb} {self.resource}{'.' if self.group else ''}{self.group}{where}"


def granted() -> dict[Right, Rule]:
    """All there is, with the rule it comes from."""
    return {
        Right(process, verb, rule.group, resource, own): rule
        for own, rules in ((False, CLUSTER_RULES), (True, NAMESPACE_RULES))
        for process, actual_rule in rules.items()
        for rule in actual_rule
        for resource in rule.resources
        for verb in rule.verbs
    }


def serves(right: Right, rule: Rule, asked: Used, namespace: str) -> bool:
    """Did this request need that right, or could it have lived by it?"""
    what = (right.process, right.verb, right.group, right.resource)
    if what != (ACCOUNTS.get(asked.account), asked.verb, asked.group, asked.resource):
        return False
    return (not right.own or asked.namespace == namespace) and (not rule.names or asked.name in rule.names)


def unused(seen: Iterable[Used], namespace: str) -> Iterator[Right]:
    """Rights that no request needed: of two that allow it, the narrower one."""
    request, rights = tuple(seen), granted()
    answered = (one for one in request if one.status < 400 or one.status == 404)
    needed = {right for one in answered for right in _narrowest(rights, one, namespace)}
    yield from sorted(rights.keys() - needed)


def _narrowest(rights: dict[Right, Rule], usage: Used, namespace: str) -> list[Right]:
    actual_rights = [right for right, rule in rights.items() if serves(right, rule, usage, namespace)]
    return [right for right in actual_rights if right.own] or actual_rights
