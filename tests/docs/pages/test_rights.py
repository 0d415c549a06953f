"""The page of rights says what is granted."""

from docs.pages.rights import page
from trimtab.cluster.processes import account_name
from trimtab.installation.installed_processes import CLUSTER_RULES, CONDITIONAL_PERMISSIONS, NAMESPACE_RULES
from trimtab.installation.purposes import purpose_of


def test_every_kind_that_an_account_may_use_is_in_its_section() -> None:
    sections = {title: text for title, _, text in (part.partition("\n") for part in page().split("\n## ")[1:])}
    missing = [
        (process, resource)
        for place in (CLUSTER_RULES, NAMESPACE_RULES)
        for process, rules in place.items()
        for rule in rules
        for resource in rule.resources
        if f"`{resource}{f'.{rule.group}' if rule.group else ''}`" not in sections[account_name(process)]
    ]
    assert missing == []


def test_every_right_has_its_entry_with_its_verbs_and_its_purpose() -> None:
    entries = {line.partition(" `")[0].removeprefix("- ") for line in page().splitlines() if line.startswith("- ")}
    rules = [rule for place in (CLUSTER_RULES, NAMESPACE_RULES) for rules in place.values() for rule in rules]
    assert {", ".join(rule.verbs) for rule in rules} <= entries
    for process in CLUSTER_RULES:
        purposes = [
            purpose_of(process, resource, group=rule.group, name=rule.names[0] if rule.names else "", own=own)
            for own, place in ((False, CLUSTER_RULES), (True, NAMESPACE_RULES))
            for rule in place[process]
            for resource in rule.resources
        ]
        assert all(purposes)
        assert [text for text in purposes if text not in page()] == []


def test_only_granted_verbs_are_told_to_be_seldom() -> None:
    granted = {
        (process, verb, resource)
        for place in (CLUSTER_RULES, NAMESPACE_RULES)
        for process, rules in place.items()
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
    }
    assert CONDITIONAL_PERMISSIONS.keys() <= granted
    assert all(when in page() for when in CONDITIONAL_PERMISSIONS.values())
