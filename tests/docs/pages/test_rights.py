"""The page of rights says what is granted."""

from docs.pages.rights import page
from trimtab.installation.installed_processes import CLUSTER_RULES, CONDITIONAL_PERMISSIONS, NAMESPACE_RULES


def test_every_rule_has_its_row() -> None:
    rules = [rule for granted in (CLUSTER_RULES, NAMESPACE_RULES) for result in granted.values() for rule in result]
    assert page().count("| everywhere |") + page().count("| Trimtab's namespace |") == len(rules)


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
