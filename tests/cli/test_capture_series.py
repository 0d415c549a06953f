"""`trimtab capture --every` against an API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.snapshots import trimtab
from tests.golden.recorded_api import serve_objects
from tests.golden.snapshots import policies_and_pods
from trimtab.cluster.capture_series import ClusterChange
from trimtab.inputs.capture_series import SeriesReader, find_series_files


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The login to a server that has the objects of a snapshot."""
    snapshot = policies_and_pods()
    with serve_objects((*snapshot.objects, *snapshot.policies)) as url:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "east",
            "contexts": [{"name": "east", "context": {"cluster": "east", "user": "operator"}}],
            "clusters": [{"name": "east", "cluster": {"server": url}}],
            "users": [{"name": "operator", "user": {}}],
        }
        path = tmp_path_factory.mktemp("login") / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        yield str(path)


def test_a_cluster_that_rests_is_written_once(kubeconfig: str, tmp_path: Path) -> None:
    folder = tmp_path / "series"
    result = trimtab("capture", "--every", "1s", "--for", "2s", "-O", str(folder), "--kubeconfig", kubeconfig)
    assert result.exit_code == 0, result.output
    changes = list(SeriesReader(find_series_files([str(folder)])).iterate_changes())
    written = [len(one.changed) for one in changes if isinstance(one, ClusterChange)]
    assert len(written) == len(changes) == 2
    assert written[0] > 5
    assert written[1] == 0


def test_a_server_that_does_not_answer_at_first_is_a_failure(tmp_path: Path) -> None:
    login = tmp_path / "kubeconfig"
    cluster = {"name": "east", "cluster": {"server": "http://127.0.0.1:9"}}
    user = {"name": "operator", "user": {}}
    context = {"name": "east", "context": {"cluster": "east", "user": "operator"}}
    login.write_text(
        yaml.safe_dump({"current-context": "east", "contexts": [context], "clusters": [cluster], "users": [user]})
    )
    words = ("capture", "--every", "1s", "--for", "2s", "-O", str(tmp_path / "series"), "--kubeconfig", str(login))
    assert trimtab(*words).exit_code == 3
