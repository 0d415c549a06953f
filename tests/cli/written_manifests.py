"""Every verb that writes manifests, by the module that writes them, with runs that write some.

A module of the command line that turns values into YAML is either here, or in `NO_MANIFESTS` with the reason.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.cli import recommending, test_idle, test_machines_priorities, test_metrics_api, test_runtimeclass
from tests.cli.report_runs import run_verb
from tests.cli.snapshots import snapshot
from tests.cli.test_plan_misplaced import HELD, SCATTERED
from tests.cli.test_reserved_measure import offline
from tests.cluster_of import node, pod
from tests.idle.cluster_with_orphans import workload

ROOT = Path(__file__).parents[2]
RECOMMENDED = ROOT / "policies" / "recommended"
START = 1_767_571_200
Write = Callable[[Path], str]
"""Writes manifests in a folder of its own, and returns them as text."""


@dataclass(frozen=True)
class Writer:
    """A run of a verb that writes manifests."""

    verb: str
    write: Write

    def __str__(self) -> str:
        return self.verb


def printed(*arguments: str | Path) -> str:
    """Returns what a run prints, which must succeed."""
    result = run_verb(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def files_in(folder: Path) -> str:
    """Returns all manifests in a folder as one text."""
    return "\n---\n".join(file.read_text() for file in sorted(folder.rglob("*.yaml")))


def busy_usage(folder: Path, kind: str = "Deployment") -> Path:
    """Four days of two pods of web: 100m, and on the last day one core."""
    rows = ["timestamp,namespace,workload,pod,container,cpu,memory"]
    for n in range(4 * 288):
        cores = 1.0 if n >= 3 * 288 else 0.1
        rows += [f"{START + n * 300},shop,{kind}/web,web-{name},app,{cores},300Mi" for name in "ab"]
    (folder / "usage.csv").write_text("\n".join(rows))
    return folder / "usage.csv"


def web_cluster(folder: Path, kind: str = "Deployment", replicas: int = 1) -> Path:
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "150m", "memory": "200Mi"}}}
    web = workload(kind, "shop", "web", {"containers": [container]}, replicas=replicas)
    machine = node("n", cpu="4", memory="16Gi", labels={"node.kubernetes.io/instance-type": "m7i.xlarge"})
    machine["status"]["capacity"] = machine["status"]["allocatable"]
    return snapshot(folder, machine, pod("other", on="n"), web)


def write_vpas(kind: str, replicas: int) -> Write:
    return lambda folder: printed(
        "vpa",
        "propose",
        "--usage",
        busy_usage(folder, kind),
        "--cluster",
        web_cluster(folder, kind, replicas),
        "--server-version",
        "1.34",
        "--manifests",
    )


def write_fixes(folder: Path) -> str:
    limited = {"requests": {"memory": "100Mi"}, "limits": {"memory": "200Mi", "cpu": "1"}}
    web = workload("Deployment", "shop", "web", {"containers": [{"name": "app", "image": "i", "resources": limited}]})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    vpa = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": target},
    }
    (folder / "m.yaml").write_text(yaml.safe_dump_all([web, vpa]))
    run_verb("lint", "-f", folder / "m.yaml", "--fix", folder / "fixed")
    return files_in(folder / "fixed")


def write_admitted(folder: Path) -> str:
    (folder / "m.yaml").write_text(json.dumps(json.loads(web_cluster(folder).read_text())["items"][-1]))
    return printed("admit", "-f", folder / "m.yaml", "-o", "yaml")


def write_hpa(folder: Path) -> str:
    history = test_metrics_api.write_history(folder / "load.csv", test_metrics_api.day())
    text = printed("metrics-api", "propose-hpa", *test_metrics_api.TERMS, "--history", history)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def write_sleep(folder: Path) -> str:
    return printed(
        "idle",
        "--cluster",
        test_idle.shop(folder),
        "--usage",
        test_idle.usage(folder),
        "--manifests",
        "--time-zone",
        "Europe/Berlin",
    )


def write_priorities(form: str, *options: str) -> Write:
    return lambda folder: printed(
        "machines", "priorities", "--cluster", test_machines_priorities.fleet(folder), "--as", form, *options
    )


def write_patches(folder: Path) -> str:
    arguments = ("--usage", recommending.usage(folder), "--cluster", snapshot(folder, recommending.web()))
    printed("recommend", *arguments, "--patch", folder / "patches")
    return files_in(folder / "patches")


def write_checkpoints(folder: Path) -> str:
    file = folder / "checkpoints.yaml"
    printed("recommend", "--usage", recommending.usage(folder), "--export-vpa", file)
    return file.read_text()


def write_pools(folder: Path) -> str:
    (folder / "estafette.yaml").write_text(json.dumps({"nodePools": {"web": {"enabled": True}, "db": {}}}))
    return printed("pools", "import", folder / "estafette.yaml")


def write_placement_policy(folder: Path) -> str:
    items = (*SCATTERED, *(pod(f"web-{name}", name, **HELD) for name in "abcd"))
    report = json.loads(printed("plan", "--cluster", snapshot(folder, *items), "--preset", "all=keen", "-o", "json"))
    return "\n---\n".join(group["policy"] for group in report["misplaced"])


def write_example(folder: Path) -> str:
    """A case without its expectation, whose files `--accept` writes."""
    case = folder / "cases" / "no-cpu-limits"
    case.mkdir(parents=True)
    shutil.copy(ROOT / "policies" / "examples" / "no-cpu-limits" / "daemon.before.yaml", case)
    printed("policies", "test", folder / "cases", "--accept")
    return (case / "daemon.after.yaml").read_text()


WRITERS: Mapping[str, tuple[Writer, ...]] = {
    "admit/command.py": (Writer("admit -o yaml", write_admitted),),
    "idle/command.py": (Writer("idle --manifests", write_sleep),),
    "install/command.py": tuple(
        Writer(f"install {' '.join(options)}", lambda _, options=options: printed("install", *options, "-o", "yaml"))  # type: ignore[misc]
        for options in ((), ("--metrics-api",), ("--mode", "policies"), ("--cert-manager",))
    ),
    "lint/write_fixes.py": (Writer("lint --fix", write_fixes),),
    "machines/priorities.py": (
        Writer("machines priorities", write_priorities("configmap")),
        Writer("machines priorities --as nodeoverlay", write_priorities("nodeoverlay", "--types", "m[57]i?.2xlarge")),
        Writer("machines priorities --as computeclass", write_priorities("computeclass", "--types", "m[57]i?.2xlarge")),
    ),
    "metrics_api/command.py": (Writer("metrics-api propose-hpa", write_hpa),),
    "reports/misplaced_pods.py": (Writer("plan: a policy for misplaced pods", write_placement_policy),),
    "policies/command.py": (Writer("policies schema", lambda _: printed("policies", "schema", "--crd")),),
    "policies/compile_command.py": tuple(
        Writer(
            f"policies compile --to {kind}",
            lambda _, kind=kind, path=path: printed("policies", "compile", "--to", kind, path),  # type: ignore[misc]
        )
        for kind, path in (
            ("mutatingadmissionpolicy", ROOT / "policies" / "library" / "spot-tolerant-jobs.yaml"),
            ("validatingadmissionpolicy", ROOT / "policies" / "library" / "tenants-in-sandbox.yaml"),
        )
    ),
    "policies/example_cases.py": (Writer("policies test --accept", write_example),),
    "pools/command.py": (Writer("pools import", write_pools),),
    "recommend/command.py": (Writer("recommend --export-vpa", write_checkpoints),),
    "recommend/export.py": (Writer("recommend --patch", write_patches),),
    "reserved/snippets.py": tuple(
        Writer(
            f"reserved measure --snippet {platform}",
            lambda folder, platform=platform: printed("reserved", "measure", *offline(folder), "--snippet", platform),  # type: ignore[misc]
        )
        for platform in ("kubelet", "gardener", "nodeadm", "ec2nodeclass")
    ),
    "runtimeclass/command.py": (
        Writer(
            "runtimeclass render",
            lambda folder: printed("runtimeclass", "render", "kata", *test_runtimeclass.world(folder)),
        ),
    ),
    "scheduler.py": (
        Writer("scheduler config", lambda folder: printed("scheduler", "config", "--cluster", web_cluster(folder))),
        Writer(
            "scheduler manifests", lambda folder: printed("scheduler", "manifests", "--cluster", web_cluster(folder))
        ),
    ),
    "vpa/command.py": tuple(
        Writer(f"vpa propose: {kind} with {replicas}", write_vpas(kind, replicas))
        for kind in ("Deployment", "StatefulSet")
        for replicas in (1, 3)
    ),
}
"""Module below trimtab/cli → the verbs for which it writes manifests."""
NO_MANIFESTS = {
    "compactor/pause_pool.py": "changes one line of a pool's ConfigMap in the cluster",
    "manifests.py": "edits the files of admit -o yaml",
    "output.py": "formats the manifests of the others",
    "reporting/emit.py": "writes reports",
}
ALL_WRITERS = tuple(writer for writers in WRITERS.values() for writer in writers)
