"""Policies as documents that go through the loader."""

import json

import yaml
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from tests.policy.test_every_action import EXAMPLES
from tests.property.drawn_parts import BY, KEYS, VALUES, dropping, sometimes
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies

EXAMPLES_OF_ACTIONS = {to_camel(name): yaml.safe_load(text) for name, text in EXAMPLES.items()}
"""Key of an action → settings that change a pod."""


@st.composite
def requests_rules(draw, resource):
    facts = BY[resource]
    origin = draw(st.sampled_from(["usage", "policy", "limit", "request"]))
    low, middle, high = sorted(draw(st.tuples(*[st.integers(0, len(facts) - 1)] * 3)))
    when = draw(st.sampled_from([None, "always", "missing"]))
    shares = draw(sometimes(_SHARES)) if (origin, when) == ("usage", "always") else None
    return dropping(
        {
            "from": origin,
            "otherwise": facts[middle] if origin == "policy" else draw(st.sampled_from([None, facts[middle]])),
            "min": facts[low] if origin == "request" else draw(sometimes(st.just(facts[low]))),
            "max": draw(sometimes(st.just(facts[high]))),
            "percent": draw(st.sampled_from([None, 50, 80])),
            "when": when,
            "round": draw(sometimes(st.just("10m" if resource == "cpu" else "64Mi"))),
            **(shares or {}),
        }
    )


_SHARES = st.sampled_from([{"minPercent": "50%"}, {"maxPercent": "150%"}, {"minPercent": 80, "maxPercent": 100}])
_DISK = st.sampled_from(
    [{"otherwise": "1Gi"}, {"from": "request", "percent": 50}, {"from": "limit", "percent": 50, "when": "always"}]
)
_CHOSEN = {"fromPod": {"b": {"label": "app", "among": ["web"]}}}
_DEVICES = st.sampled_from([{"extended": {"example.com/license": 1}}, {"extended": {"nvidia.com/gpu": 2}}])
_STRAY = st.builds(lambda s: {"stray": s}, st.sampled_from(["warn", "strip", "keep", "deny"]))
_PRIORITIES = st.builds(
    lambda n, o: {"name": n, "override": o}, st.sampled_from(["low", "high", "nope"]), st.booleans()
)
_LIMIT_RULES = st.sampled_from([None, "remove", "remove", "keep", "request", "request x 1.5", "request x 2"])
_LIMITS = st.builds(
    lambda c, m, d: dropping({"cpu": c, "memory": m, "ephemeral-storage": d}),
    _LIMIT_RULES,
    _LIMIT_RULES,
    sometimes(_LIMIT_RULES),
)
_REQUIRES = st.one_of(
    st.builds(lambda k, v: {"label": k, "in": [v]}, KEYS, VALUES),
    st.builds(lambda k, v: {"label": k, "notIn": [v]}, KEYS, VALUES),
    st.builds(lambda k, o: {"label": k, o: True}, KEYS, st.sampled_from(["exists", "absent"])),
    st.builds(lambda k: {"label": k, "inNamespaceLabel": "team"}, KEYS),
)
_PREFERS = st.builds(lambda r, w: {**r, "weight": w}, _REQUIRES, st.sampled_from([1, 50, 100]))
_TOLERATES = st.builds(
    lambda k, v, e: dropping({"key": k, "value": v, "effect": e}),
    st.sampled_from(["pool", "spot", "kata"]),
    st.sampled_from([None, "batch"]),
    st.sampled_from([None, "NoSchedule"]),
)


_STRICT = [
    {},
    {},
    {"whenUnsatisfiable": "DoNotSchedule"},
    {"whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2},
    {"whenUnsatisfiable": "DoNotSchedule", "minDomains": 2},
]


@st.composite
def actions(draw):
    result = {
        "runtimeClass": draw(
            sometimes(
                st.builds(
                    lambda n, o: {"name": n, "override": o},
                    st.sampled_from(["kata", "gvisor", "plain", "nope"]),
                    st.booleans(),
                )
            )
        ),
        "overhead": draw(sometimes(_STRAY)),
        "requests": draw(
            sometimes(
                st.builds(
                    lambda c, m, d, e: dropping({"cpu": c, "memory": m, "ephemeral-storage": d}) | e,
                    st.none() | requests_rules("cpu"),
                    st.none() | requests_rules("memory"),
                    sometimes(_DISK),
                    sometimes(_DEVICES, {}),
                )
            )
        ),
        "limits": draw(sometimes(_LIMITS)),
        "placement": draw(
            sometimes(
                st.builds(
                    lambda r, a, p, s, t: {
                        "require": r,
                        "requireAny": a,
                        "prefer": p,
                        "nodeSelector": s,
                        "tolerate": t,
                    },
                    st.lists(_REQUIRES, max_size=2),
                    sometimes(st.lists(st.lists(_REQUIRES, min_size=1, max_size=2), max_size=2), []),
                    st.lists(_PREFERS, max_size=2),
                    sometimes(st.just({"zone": "a"}), {}),
                    st.lists(_TOLERATES, max_size=2),
                )
            )
        ),
        "priorityClass": draw(sometimes(_PRIORITIES)),
        "topologySpread": draw(
            sometimes(
                st.builds(
                    lambda keys, more: {"constraints": [{"topologyKey": key, **more} for key in keys]},
                    st.lists(
                        st.sampled_from(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "zone"]),
                        min_size=1,
                        max_size=2,
                        unique=True,
                    ),
                    st.sampled_from(_STRICT),
                )
            )
        ),
        "safeToEvictVolumes": draw(sometimes(st.sampled_from([{}, {"hostPaths": True}]))),
        "labels": draw(
            sometimes(
                st.builds(
                    lambda a, o, n: {"add": a, "override": o, **n},
                    st.sampled_from([{"cost": "low"}, {"app": "web"}, {"tier": "untrusted"}]),
                    st.booleans(),
                    st.sampled_from([{}, {"fromNamespace": {"team": "team"}}, _CHOSEN]),
                )
            )
        ),
        "annotations": draw(sometimes(st.just({"add": {"note": "y"}}))),
        "schedulerName": draw(sometimes(st.builds(lambda o: {"name": "packs", "override": o}, st.booleans()))),
        "terminationGracePeriod": draw(sometimes(st.sampled_from([{"maxSeconds": 20}, {"minSeconds": 60}]))),
        "emptyDirs": draw(sometimes(st.just({"sizeLimit": "1Gi"}))),
    }
    # An action without a generator of its own is drawn as its example.
    result |= {
        key: draw(sometimes(st.just(example))) for key, example in EXAMPLES_OF_ACTIONS.items() if key not in result
    }
    document = dropping(result)
    return document or {"labels": {"add": {"cost": "low"}}}


_CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "namespaces": st.sampled_from([{"include": ["team-*"]}, {"exclude": ["team-b"]}]),
        "podLabels": st.sampled_from([{"tier": "untrusted"}, {"app": "*"}]),
        "owners": st.sampled_from(
            [["Deployment"], ["DaemonSet", "Job"], ["Pod"], ["Deployment/w*"], ["ReplicaSet/*4f"]]
        ),
        "containers": st.sampled_from(
            [
                {"names": ["app"]},
                {"roles": ["init"]},
                {"roles": ["main", "sidecar"]},
                {"images": ["web*"]},
                {"images": ["*:1"]},
            ]
        ),
        "runtimeClasses": st.sampled_from([["none"], ["kata"]]),
        "priorityClasses": st.sampled_from([["none"], ["high"]]),
        "vpa": st.sampled_from(["managed", "unmanaged"]),
        "annotations": st.sampled_from([{"note": "*"}, {"note": "x"}, {"note": "y"}]),
        "serviceAccounts": st.sampled_from([["default"], ["ci-*"]]),
        "requests": st.sampled_from([{"cpu": {"atLeast": "100m"}}, {"memory": {"absent": True}}]),
    },
)
_MATCHES = st.one_of(
    st.just({}),
    st.just({}),
    _CONDITIONS,
    st.builds(lambda c, e: {**c, "exclude": [e]}, _CONDITIONS, _CONDITIONS.filter(bool)),
)


@st.composite
def policy_documents(draw, name, modes=("apply",)):
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": name},
        "spec": {
            "priority": draw(st.integers(0, 2)),
            "mode": draw(st.sampled_from(modes)),
            "rollout": draw(st.sampled_from([100, 100, 50])),
            "guaranteed": draw(st.sampled_from(["leave", "leave", "change"])),
            "match": draw(_MATCHES),
            "actions": draw(actions()),
        },
    }


@st.composite
def documents(draw, modes=("apply", "apply", "apply", "warn", "audit")):
    return [draw(policy_documents(f"p{number}", modes)) for number in range(draw(st.integers(1, 4)))]


def load(result) -> Policies:
    loaded = load_policies([(f"{each['metadata']['name']}.json", json.dumps(each).encode()) for each in result])
    assert not loaded.mistakes, "\n".join(map(str, loaded.mistakes))
    return loaded.policies


def policies(modes=("apply", "apply", "apply", "warn", "audit")):
    return documents(modes).map(load)


@st.composite
def strict_spreads(draw):
    """One policy that spreads every pod over the label of a node that not all have."""
    constraint = {"topologyKey": draw(st.sampled_from(["zone", "pool"])), **draw(st.sampled_from(_STRICT[2:]))}
    spec = {"actions": {"topologySpread": {"constraints": [constraint], "by": ["tier", "app"]}}}
    document = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": "spread"}, "spec": spec}
    return load([document])
