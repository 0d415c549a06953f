"""The CronJob that captures the cluster for `trimtab replay`, and the permissions of its account, which can only list.

It is installed on request. A Job begins each day and captures until the next one begins, because a process that starts
writes a file with every object, and after that only what changed. Its files are on a volume that the user provides.
"""

from collections.abc import Iterator

from trimtab.cluster.snapshot import SHAPES_BY_KIND
from trimtab.installation.access_rule import WHEN_BUFFERS, WHEN_VPA, Rule
from trimtab.installation.deployments import render_cron_job
from trimtab.installation.installed_process import InstalledProcess
from trimtab.installation.names import InstallValues, Manifest
from trimtab.installation.rbac import render_accounts
from trimtab.kube.resources import LIST_SOURCES

CAPTURE = "capture"
"""The name of the CronJob, and of its account without `trimtab-`."""
FOLDER = "/captures"
"""Where the volume is mounted."""
_FOR_CAPTURES = "to write it into the captures"
_CONFIG_MAP = "ConfigMap"


def _list_rules() -> Iterator[Rule]:
    """Yields a rule for each API group with kinds of a capture. ConfigMaps of other namespaces are not read, because
    they may hold secrets, and a permission to list knows no labels."""
    by_group: dict[str, list[str]] = {}
    for kind in (*SHAPES_BY_KIND, "PodPolicy"):
        source = LIST_SOURCES[kind]
        if kind != _CONFIG_MAP:
            group = source.group_version.rpartition("/")[0]
            by_group.setdefault(group, []).append(source.plural)
    for group, plurals in by_group.items():
        yield Rule(group, tuple(plurals), ("list",))


_RULES = tuple(_list_rules())

PROCESS = InstalledProcess(
    name=CAPTURE,
    cluster_rules=_RULES,
    namespace_rules=(Rule("", ("configmaps",), ("list",)),),
    conditions={("list", "verticalpodautoscalers"): WHEN_VPA, ("list", "capacitybuffers"): WHEN_BUFFERS},
    cluster_purposes={resource: _FOR_CAPTURES for rule in _RULES for resource in rule.resources},
    namespace_purposes={"configmaps": "to write the pools and their states into the captures"},
    write_policies=(),
)


def render_captures(values: InstallValues) -> Iterator[Manifest]:
    """Yields the account with its roles, and the CronJob; the volume is the user's."""
    yield from render_accounts((PROCESS,), values)
    container = {
        "name": CAPTURE,
        "image": values.image,
        "args": [
            CAPTURE,
            f"--every={values.capture_every}",
            "--for=1d",
            f"--delete-after={values.capture_keep}",
            f"--config-maps-in={values.namespace}",
            f"--output-file={FOLDER}",
        ],
        # It holds every object of the cluster in memory for a moment, as the other processes do.
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [{"name": "captures", "mountPath": FOLDER}],
    }
    claim = {"name": "captures", "persistentVolumeClaim": {"claimName": values.capture_claim}}
    yield render_cron_job(CAPTURE, values, container=container, volumes=[claim])
