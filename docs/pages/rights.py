"""docs/reference/rights.md: every right of every account, and when it is used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trimtab.cluster.processes import account_name
from trimtab.installation.access_rule import Rule
from trimtab.installation.installed_processes import CLUSTER_RULES, CONDITIONAL_PERMISSIONS, NAMESPACE_RULES
from trimtab.installation.processes.captures import CAPTURE
from trimtab.installation.purposes import purpose_of

_ABOUT = """\
# Rights

The permissions of each ServiceAccount: first those in the whole cluster, then those in Trimtab's namespace alone. There
are no wildcards; an account may read only its own Secrets, by name; and in other namespaces the accounts create only
Events and evictions. Brackets say when the account uses verbs that it does not use from its start. `trimtab doctor`
names the permissions that an account lacks, with what they are for. `make e2e` compares this page with the audit log of
an API server: the server refuses no request, and every permission is used or has a condition here.
"""
_ABOUT_ACCOUNT = {
    "uninstall": "Helm's hook: the account exists while `helm uninstall` runs.\n",
    CAPTURE: "The CronJob of captures: the account exists with `--capture-claim`.\n",
}


@dataclass(frozen=True, slots=True)
class Right:
    """What an account may do with a kind of object, and why. Kinds with the same words are one entry of the page."""

    verbs: tuple[str, ...]
    purpose: str
    conditions: str


def page() -> str:
    """Returns the page's text."""
    lines = [_ABOUT]
    owners: dict[tuple[str, Right], str] = {}
    for process in CLUSTER_RULES:
        lines += [f"## {account_name(process)}\n", *([_ABOUT_ACCOUNT[process]] if process in _ABOUT_ACCOUNT else [])]
        lines += [*_list_rights(process, CLUSTER_RULES[process], owners), "", "In Trimtab's namespace:\n"]
        lines += [*_list_rights(process, NAMESPACE_RULES[process], owners, own=True), ""]
    return "\n".join(lines)


def _list_rights(
    process: str, rules: Iterable[Rule], owners: dict[tuple[str, Right], str], *, own: bool = False
) -> Iterator[str]:
    """Yields an entry for each purpose, and one for all that an earlier account may do too.

    owners: (kind, right) → the first account that has it; this adds those of the process."""
    kinds: dict[Right, list[str]] = {}
    shared: dict[str, list[str]] = {}
    for rule in rules:
        for resource in rule.resources:
            kind, right = _name_kind(rule, resource), _find_right(process, rule, resource, own=own)
            owner = owners.setdefault((kind, right), account_name(process))
            named = kinds.setdefault(right, []) if owner == account_name(process) else shared.setdefault(owner, [])
            named.append(kind)
    yield from (f"- as {owner}: {', '.join(named)}" for owner, named in shared.items())
    for right, named in kinds.items():
        conditions = f" ({right.conditions})" if right.conditions else ""
        yield f"- {', '.join(right.verbs)} {', '.join(named)}: {right.purpose}{conditions}"


def _name_kind(rule: Rule, resource: str) -> str:
    names = f" named {', '.join(f'`{name}`' for name in rule.names)}" if rule.names else ""
    return f"`{resource}{f'.{rule.group}' if rule.group else ''}`{names}"


def _find_right(process: str, rule: Rule, resource: str, *, own: bool) -> Right:
    name = rule.names[0] if rule.names else ""
    purpose = purpose_of(process, resource, group=rule.group, name=name, own=own)
    verbs_by_condition: dict[str, list[str]] = {}
    for verb in rule.verbs:
        if when := CONDITIONAL_PERMISSIONS.get((process, verb, resource)):
            verbs_by_condition.setdefault(when, []).append(verb)
    conditions = "; ".join(f"{' and '.join(verbs)} when {when}" for when, verbs in verbs_by_condition.items())
    return Right(rule.verbs, purpose, conditions)
