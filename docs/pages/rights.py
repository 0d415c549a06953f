"""docs/reference/rights.md: every right of every account, and when it is used."""

from collections.abc import Iterator

from trimtab.cluster.processes import account_name
from trimtab.installation.access_rule import Rule
from trimtab.installation.installed_processes import CLUSTER_RULES, CONDITIONAL_PERMISSIONS, NAMESPACE_RULES
from trimtab.installation.processes.captures import CAPTURE
from trimtab.installation.purposes import purpose_of

_ABOUT = """\
# Rights

The permissions of each ServiceAccount. There are no wildcards; an account may read only its own Secrets, by name; and
in other namespaces the accounts create only Events and evictions. A condition in the last column says when the
account uses the verbs of that row; without a condition, it uses them from its start. `trimtab doctor` names the
permissions that an account lacks, with what they are for. `make e2e` compares this page with the audit log of an API
server: the server refuses no request, and every permission is used or has a condition here.
"""
EVERYWHERE = "everywhere"
_ABOUT_ACCOUNT = {
    "uninstall": "Helm's hook: the account exists while `helm uninstall` runs.\n",
    CAPTURE: "The CronJob of captures: the account exists with `--capture-claim`.\n",
}


def page() -> str:
    lines = [_ABOUT]
    for process in CLUSTER_RULES:
        lines += [f"## {account_name(process)}\n", *([_ABOUT_ACCOUNT[process]] if process in _ABOUT_ACCOUNT else [])]
        lines += ["| where | group | resources | verbs | what for | only when |", "|---|---|---|---|---|---|"]
        for where, rules in ((EVERYWHERE, CLUSTER_RULES[process]), ("Trimtab's namespace", NAMESPACE_RULES[process])):
            lines += [_row(process, where, rule) for rule in rules]
        lines.append("")
    return "\n".join(lines)


def _row(process: str, where: str, rule: Rule) -> str:
    resources = ", ".join(f"`{name}`" for name in rule.resources)
    named = f" named {', '.join(f'`{name}`' for name in rule.names)}" if rule.names else ""
    seldom = "; ".join(dict.fromkeys(_seldom(process, rule))) or "–"
    purposes = "; ".join(dict.fromkeys(_purposes(process, rule, own=where != EVERYWHERE)))
    return (
        f"| {where} | {rule.group or 'core'} | {resources}{named} | {', '.join(rule.verbs)} | {purposes} | {seldom} |"
    )


def _purposes(process: str, rule: Rule, *, own: bool) -> Iterator[str]:
    """What each resource is for; the resources are named only if their purposes differ."""
    name = rule.names[0] if rule.names else ""
    texts = {
        resource: purpose_of(process, resource, group=rule.group, name=name, own=own) for resource in rule.resources
    }
    for resource, text in texts.items():
        yield f"`{resource}`: {text}" if len(set(texts.values())) > 1 else text


def _seldom(process: str, rule: Rule) -> Iterator[str]:
    for resource in rule.resources:
        for verb in rule.verbs:
            if when := CONDITIONAL_PERMISSIONS.get((process, verb, resource)):
                yield f"{verb} {resource}: {when}" if len(rule.resources) > 1 else f"{verb}: {when}"
