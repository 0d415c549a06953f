import pytest

from tests.build import NAMESPACE, container, facts, pod, resources, toleration
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.validate_pod import validate_pod
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.api.pod import (
    Affinity,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodOS,
    PreferredTerm,
    TopologySpreadConstraint,
)

KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
FIRST = "spec.containers[0].resources"
TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def complaint(given_pod: Pod) -> str | None:
    pod = validate_pod(given_pod, facts(), NAMESPACE)
    if isinstance(pod, PodRejected):
        assert (pod.code, pod.plugin) == (422, "validation")
        return pod.message
    return None


def required(*expressions: SelectorRequirement, fields: tuple[SelectorRequirement, ...] = ()) -> Affinity:
    term = NodeSelectorTerm(match_expressions=expressions, match_fields=fields)
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=(term,))))


def test_a_pod_that_says_nothing_is_valid():
    assert complaint(pod()) is None


@pytest.mark.parametrize(
    ("requests", "limits", "message"),
    [
        (
            {"cpu": "2"},
            {"cpu": "500m"},
            f'{FIRST}.requests: Invalid value: "2": must be less than or equal to cpu limit of 500m',
        ),
        ({"cpu": "0.5"}, {"cpu": "500m"}, None),
        ({"memory": "-1"}, {}, f'{FIRST}.requests[memory]: Invalid value: "-1": must be greater than or equal to 0'),
        ({}, {"cpu": "-1m"}, f'{FIRST}.limits[cpu]: Invalid value: "-1m": must be greater than or equal to 0'),
        ({"a.b/c": "1"}, {}, f"{FIRST}.limits: Required value: Limit must be set for non overcommitable resources"),
        ({"a.b/c": "1"}, {"a.b/c": "2"}, f'{FIRST}.requests: Invalid value: "1": must be equal to a.b/c limit of 2'),
        (
            {"a.b/c": "1500m"},
            {"a.b/c": "1500m"},
            f'[{FIRST}.limits[a.b/c]: Invalid value: "1500m": must be an integer,'
            f' {FIRST}.requests[a.b/c]: Invalid value: "1500m": must be an integer]',
        ),
        (
            {"bogus": "1"},
            {},
            f'[{FIRST}.requests[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified,'
            f' {FIRST}.requests[bogus]: Invalid value: "bogus": must be a standard resource for containers]',
        ),
        ({}, {"hugepages-2Mi": "4Mi"}, f"{FIRST}: Forbidden: HugePages require cpu or memory"),
        (
            {"cpu": "1"},
            {"hugepages-2Mi": "3Mi"},
            f'{FIRST}.limits[hugepages-2Mi]: Invalid value: "3Mi":'
            " 3Mi is not positive integer multiple of hugepages-2Mi",
        ),
    ],
)
def test_a_container_may_ask_for_this_much(requests, limits, message):
    assert complaint(pod(container(requests=requests, limits=limits))) == message


def test_init_containers_are_named_as_such():
    actual_complaint = complaint(pod(init=(container("init", requests={"cpu": "2"}, limits={"cpu": "1"}),)))
    assert actual_complaint == (
        'spec.initContainers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'
    )


def test_a_host_port_is_taken_once():
    port = ContainerPort(container_port=80, host_port=80)
    twice = pod(container("a", ports=(port,)), container("b", ports=(port,)), init=(container("i", ports=(port,)),))
    assert complaint(twice) == 'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'


def test_pod_level_resources_hold_their_containers():
    inside = container(requests={"cpu": "200m"}, limits={"memory": "2Gi"})
    own = resources(requests={"cpu": "100m"}, limits={"cpu": "1", "memory": "1Gi"})
    assert complaint(pod(inside, resources=own)) == (
        '[spec.resources.requests[cpu]: Invalid value: "100m": must be greater than or equal to aggregate container'
        ' requests of 200m, spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or'
        " equal to pod limits of 1Gi]"
    )


def test_pod_level_resources_are_cpu_memory_and_huge_pages():
    assert complaint(pod(resources=resources(limits={"ephemeral-storage": "1Gi"}))) == (
        'spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage":'
        ' supported values: "cpu", "hugepages-", "memory"'
    )


def test_a_windows_pod_has_no_pod_level_resources():
    assert complaint(pod(os=PodOS(name="windows"), resources=resources(limits={"cpu": "1"}))) == (
        "spec.resources: Forbidden: may not be set for a windows pod"
    )


def test_negative_overhead_is_told_as_a_limit():
    assert complaint(pod(overhead={"cpu": "-1"})) == (
        'spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"app.kubernetes.io/name": "web", "empty": ""}, None),
        ({"a b": "c"}, f'metadata.labels: Invalid value: "a b": name part {KEY}'),
        ({"a": "c d"}, f'metadata.labels: Invalid value: "c d": {VALUE}'),
        ({"a": "x" * 64}, f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'),
        ({"/a": "c"}, 'metadata.labels: Invalid value: "/a": prefix part must be non-empty'),
        (
            {"x.io/": "c"},
            f'[metadata.labels: Invalid value: "x.io/": name part must be non-empty,'
            f' metadata.labels: Invalid value: "x.io/": name part {KEY}]',
        ),
    ],
)
def test_labels_have_their_syntax(labels, message):
    assert complaint(pod(labels=labels)) == message


def test_annotation_keys_may_have_capitals_and_values_anything():
    assert complaint(pod(annotations={"Example.COM/Key": "any thing"})) is None


def test_annotations_together_are_bound():
    assert complaint(pod(annotations={"a": "x" * (256 << 10)})) == (
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    )


@pytest.mark.parametrize(
    ("given_toleration", "message"),
    [
        (toleration("a", operator="Exists"), None),
        (toleration("a", "b"), None),
        (
            toleration("a", "b", operator="Exists"),
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
        ),
        (
            toleration(value="x"),
            'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty,'
            ' which means "match all values and all keys"',
        ),
        (
            toleration("a", seconds=3),
            'spec.tolerations[0].effect: Invalid value: "":'
            " effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            toleration("a", "1", operator="Gt"),
            'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"',
        ),
        (
            toleration("a", operator="Nope", effect="NoSchedule"),
            'spec.tolerations[0].operator: Unsupported value: "Nope": supported values: "Equal", "Exists"',
        ),
        (
            toleration("a", effect="Bad"),
            'spec.tolerations[0].effect: Unsupported value: "Bad": supported values: "NoSchedule",'
            ' "PreferNoSchedule", "NoExecute"',
        ),
    ],
)
def test_tolerations_have_their_operators(given_toleration, message):
    assert complaint(pod(tolerations=(given_toleration,))) == message


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        ("In", ("a",), None),
        ("Gt", ("x",), None),
        ("In", (), ".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
        ("Exists", ("a",), ".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        ("Lt", ("1", "2"), ".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"),
        ("No", (), '.operator: Invalid value: "No": not a valid selector operator'),
        ("In", ("c d",), f'.values[0]: Invalid value: "c d": {VALUE}'),
    ],
)
def test_required_node_affinity_has_its_operators(operator, values, message):
    # Gt with text is accepted by the API (1.36.3, measured): only the scheduler cannot read it.
    affinity = required(SelectorRequirement(key="pool", operator=operator, values=values))
    assert complaint(pod(affinity=affinity)) == (message and f"{TERM}[0].matchExpressions[0]{message}")


def test_a_required_selector_needs_a_term():
    none = Affinity(node_affinity=NodeAffinity(required=NodeSelector()))
    assert complaint(pod(affinity=none)) == f"{TERM}: Required value: must have at least one node selector term"


def test_fields_are_matched_by_one_name():
    other = required(fields=(SelectorRequirement(key="metadata.uid", operator="In", values=("n1",)),))
    assert complaint(pod(affinity=other)) == (
        f'{TERM}[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key'
    )


def test_preferences_weigh_from_one_to_a_hundred():
    heavy = PreferredTerm(weight=101, preference=NodeSelectorTerm())
    actual_complaint = complaint(pod(affinity=Affinity(node_affinity=NodeAffinity(preferred=(heavy,)))))
    assert actual_complaint is not None
    assert actual_complaint.endswith("[0].weight: Invalid value: 101: must be in the range 1-100")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, None),
        ({"max_skew": 0}, "[0].maxSkew: Invalid value: 0: must be greater than zero"),
        ({"topology_key": ""}, "[0].topologyKey: Required value: can not be empty"),
        (
            {"when_unsatisfiable": "Never"},
            '[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            {"min_domains": 2},
            "[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule,"
            " not ScheduleAnyway",
        ),
    ],
)
def test_a_spread_has_its_fields(fields, message):
    plain = {"max_skew": 1, "topology_key": "zone", "when_unsatisfiable": "ScheduleAnyway"}
    spread = TopologySpreadConstraint(**plain | fields)
    assert complaint(pod(topology_spread_constraints=(spread,))) == (
        message and f"spec.topologySpreadConstraints{message}"
    )


def test_a_spread_is_said_once():
    spread = TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway")
    assert complaint(pod(topology_spread_constraints=(spread, spread))) == (
        'spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, ScheduleAnyway}"'
    )
