"""A condition that nothing in the cluster satisfies is a finding, with the name that was probably meant."""

import pytest

from tests.build import facts, namespace, policies, policy
from trimtab.policy.lint import lint

LABEL = "{labels: {add: {a: b}}}"
PODS = [{"app": "batch", "team": "blue"}, {"app": "web"}]
WORLD = facts(namespace("team-a", tier="gold"), namespace("team-b"))


def said(match, pods=PODS, world=WORLD):
    return [one.reason.sentence for one in lint(policies(policy(LABEL, match=match)), world, pods)]


@pytest.mark.parametrize(
    ("match", "sentence"),
    [
        ("{podLabels: {ap: batch}}", "no pod of the cluster has a label ap; did you mean 'app'?"),
        ("{podLabels: {app: bach}}", "no pod of the cluster has the label app=bach; did you mean 'batch'?"),
        ("{podLabels: {app: 'x*'}}", "no pod of the cluster has the label app=x*"),
        ("{podSelector: {matchLabels: {teem: blue}}}", "no pod of the cluster has a label teem; did you mean 'team'?"),
        (
            "{podSelector: {matchExpressions: [{key: app, operator: In, values: [wep, db]}]}}",
            "no pod of the cluster has the label app=wep or db; did you mean 'web'?",
        ),
        (
            "{podSelector: {matchExpressions: [{key: tier, operator: Exists}]}}",
            "no pod of the cluster has a label tier",
        ),
        (
            "{exclude: [{podLabels: {app: bach}}]}",
            "no pod of the cluster has the label app=bach; did you mean 'batch'?",
        ),
        ("{namespaces: {include: [taem-a]}}", "the cluster has no namespace taem-a; did you mean 'team-a'?"),
        (
            "{namespaces: {selector: {matchLabels: {tire: gold}}}}",
            "no namespace of the cluster has a label tire; did you mean 'tier'?",
        ),
        (
            "{namespaces: {selector: {matchLabels: {tier: gols}}}}",
            "no namespace of the cluster has the label tier=gols; did you mean 'gold'?",
        ),
        (
            "{namespaces: {include: [team-b], selector: {matchLabels: {tier: gold}}}}",
            "no namespace of the cluster has all the labels that the policy selects",
        ),
    ],
)
def test_what_nothing_has(match, sentence):
    assert said(match) == [sentence]


@pytest.mark.parametrize(
    "match",
    [
        "{podLabels: {app: 'b*', team: '*'}}",
        "{podSelector: {matchExpressions: [{key: app, operator: In, values: [gone, web]}]}}",
        "{podSelector: {matchExpressions: [{key: gone, operator: DoesNotExist}]}}",
        "{namespaces: {include: ['team-*'], selector: {matchLabels: {tier: gold}}}}",
    ],
)
def test_what_something_has(match):
    assert said(match) == []


@pytest.mark.parametrize("match", ["{podLabels: {ap: batch}}", "{namespaces: {include: [taem-a]}}"])
def test_without_a_cluster_nothing_is_concluded(match):
    assert said(match, pods=(), world=None) == []
    assert said(match, pods=(), world=facts()) == []
