"""One installation for all attacks of a file: manifests applied, no process running unless the test starts it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed, vacated


@pytest.fixture(scope="module")
def applied(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The manifests of `trimtab install`, in force; the namespace of a team."""
    whole_cluster.needs_own("identities of its own")
    inside = whole_cluster.in_namespace(f"team-{uuid.uuid4().hex[:5]}")
    installation = Installed(inside, tmp_path_factory.mktemp("applied"))
    vacated(inside)
    try:
        installation.apply()
        yield installation
    finally:
        installation.remove()
        installation.balancer.close()
        inside.clean_up()
