"""Where the binaries come from: what the user names, else a cache outside the tree, else `go build`.

Run as a program (`make e2e-build`) it builds what is missing and prints where everything is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import modules
from tests.controlplane.modules import Module
from tests.controlplane.supervisor import die_with_parent

Tell = Callable[[str], None]


class CannotBuild(RuntimeError):
    """`go` is missing or failed. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """A path per program, and the version the Kubernetes ones were asked for."""

    paths: dict[str, Path]
    kubernetes: str

    def __getitem__(self, name: str) -> str:
        return str(self.paths[name])


def cache_folder() -> Path:
    """Binaries and prepared clusters. May be removed at any time: it is filled again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "trimtab-e2e"


def told_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def find(kubernetes: str | None = None, tell: Tell = told_on_stderr) -> Binaries:
    """Every binary, built if it has to be. `kubernetes` is a minor such as "1.34"."""
    expected = [modules.etcd(), modules.kubernetes(kubernetes), modules.kwok()]
    paths: dict[str, Path] = {}
    to_build = [module for module in expected if is_missing(module)]
    if to_build:
        minutes = sum(module.minutes for module in to_build)
        tell(f"{len(to_build)} of {len(expected)} programs are built first, once: about {minutes:g} min on two cores")
    for module in expected:
        named = named_by_the_user(module)
        missing = module.packages.keys() - named.keys()
        paths |= (built(module, tell) if missing else {}) | named
    return Binaries(paths=paths, kubernetes=expected[1].version)


def kubectl(tell: Tell = told_on_stderr) -> Path:
    """For somebody's cluster: the kubectl on the PATH, else ours."""
    there = shutil.which("kubectl")
    return Path(there) if there else find(tell=tell).paths["kubectl"]


def helm(tell: Tell = told_on_stderr) -> Path:
    """Only who installs the chart needs it; KUBEBUILDER_ASSETS may hold it, too."""
    module = modules.helm()
    return (named_by_the_user(module) or built(module, tell))["helm"]


def custom_metrics_adapter(tell: Tell = told_on_stderr) -> Path:
    """Only who compares the metrics API with it needs it."""
    module = modules.custom_metrics_adapter()
    return (named_by_the_user(module) or built(module, tell))["custom-metrics-adapter"]


def kube_state_metrics(tell: Tell = told_on_stderr) -> Path:
    """Only who reads a cluster's past from Prometheus needs it."""
    module = modules.kube_state_metrics()
    return (named_by_the_user(module) or built(module, tell))["kube-state-metrics"]


def vertical_pod_autoscaler(tell: Tell = told_on_stderr) -> dict[str, Path]:
    """The VPA's programs by name: only who lets it act on our recommendation needs them."""
    module = modules.vertical_pod_autoscaler()
    return named_by_the_user(module) if not is_missing_from_assets(module) else built(module, tell)


def karpenter(tell: Tell = told_on_stderr) -> Path:
    """Only benches that compare with it need it."""
    module = modules.karpenter()
    return (named_by_the_user(module) or built(module, tell))["karpenter-kwok"]


def is_missing_from_assets(module: Module) -> bool:
    return bool(module.packages.keys() - named_by_the_user(module).keys())


def is_missing(module: Module) -> bool:
    """Is it neither named by the user as a whole nor in the cache?"""
    return is_missing_from_assets(module) and not place_of(module).is_dir()


def place_of(module: Module) -> Path:
    return cache_folder() / "bin" / module.key


def named_by_the_user(module: Module) -> dict[str, Path]:
    """What KUBEBUILDER_ASSETS holds of this module; often only etcd, kube-apiserver and kubectl."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    there = {name: Path(assets) / name for name in module.packages} if assets else {}
    return {name: path for name, path in there.items() if os.access(path, os.X_OK)}


def built(module: Module, tell: Tell) -> dict[str, Path]:
    """The module's binaries from the cache; whoever comes first builds them, others wait for that."""
    place = place_of(module)
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with one_build_at_a_time(place.parent, tell):
            if not place.is_dir():
                build(module, place, tell)
    return {name: place / name for name in module.packages}


@contextlib.contextmanager
def one_build_at_a_time(folder: Path, tell: Tell) -> Iterator[None]:
    """A lock that the kernel lets go when its holder dies. Two builds would only share the same cores."""
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another build is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(module: Module, place: Path, tell: Tell) -> None:
    """Into a folder beside `place`, renamed at the end: a build that died leaves nothing that looks whole."""
    if shutil.which("go") is None:
        raise CannotBuild(
            "no `go` on the PATH: install Go 1.26 or newer, or name ready binaries with KUBEBUILDER_ASSETS"
        )
    tell(f"building {module.key} (once; about {module.minutes:g} min on two cores)")
    for left in place.parent.glob(".building-*"):  # by a build that was killed; ours is the only one now
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".building-") as unfinished:
        out = Path(unfinished) / place.name
        out.mkdir()
        for name, package in module.packages.items():
            go_build(module, package, out / name, tell)
        out.rename(place)


def go_build(module: Module, package: str, out: Path, tell: Tell) -> None:
    """One binary. Pure Go: a C compiler is not asked for."""
    argv = [
        "go",
        "build",
        "-v",
        "-buildvcs=false",
        "-p",
        str(jobs()),
        "-ldflags",
        module.ldflags,
        "-o",
        str(out),
        package,
    ]
    env = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    begun = message = time.monotonic()
    lines: list[str] = []
    mine = os.getpid()

    def politely() -> None:
        os.nice(10)
        die_with_parent(mine)

    with subprocess.Popen(
        argv, cwd=module.folder, env=env, text=True, stderr=subprocess.PIPE, preexec_fn=politely
    ) as go:
        assert go.stderr is not None
        for line in go.stderr:  # -v prints a package a line, a mistake likewise
            lines.append(line)
            if time.monotonic() - message > 10:
                message = time.monotonic()
                tell(f"  {out.name}: {message - begun:.0f} s, {len(lines)} packages, at {line.strip()}")
    if go.returncode:
        raise CannotBuild(f"{' '.join(argv)}\nin {module.folder} ended with {go.returncode}:\n{''.join(lines[-20:])}")
    tell(f"  {out.name}: done in {time.monotonic() - begun:.0f} s")


def jobs() -> int:
    """As many as cores, fewer where memory is short: linking the API server takes more than a gigabyte."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(os.cpu_count() or 1, memory // (3 << 29)))


if __name__ == "__main__":
    try:
        found = {
            **find().paths,
            "helm": helm(),
            "custom-metrics-adapter": custom_metrics_adapter(),
            "kube-state-metrics": kube_state_metrics(),
            **vertical_pod_autoscaler(),
        }
    except (CannotBuild, LookupError) as error:
        raise SystemExit(str(error)) from None
    for program, where in sorted(found.items()):
        print(f"{program:26} {where}")
