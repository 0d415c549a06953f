"""`trimtab capture --every` against an API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.recommending import kubeconfig as write_login
from tests.cli.snapshots import trimtab
from tests.golden.recorded_api import serve_objects
from tests.golden.snapshots import pools_with_a_plan
from trimtab.cluster.capture_series import ClusterChange
from trimtab.inputs.capture_series import SeriesReader, find_series_files


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The login to a server that has the objects of a snapshot."""
    snapshot = pools_with_a_plan()
    with serve_objects((*snapshot.objects, *snapshot.policies)) as url:
        yield str(write_login(tmp_path_factory.mktemp("login"), url))


def test_a_cluster_that_rests_is_written_once(kubeconfig: str, tmp_path: Path) -> None:
    folder = tmp_path / "series"
    result = trimtab("capture", "--every", "2s", "--for", "4s", "-O", str(folder), "--kubeconfig", kubeconfig)
    assert result.exit_code == 0, result.output
    changes = list(SeriesReader(find_series_files([str(folder)])).iterate_changes())
    written = [len(one.changed) for one in changes if isinstance(one, ClusterChange)]
    assert len(written) == len(changes) == 2
    assert written[0] > 5
    assert written[1] == 0


def test_a_server_that_does_not_answer_at_first_is_a_failure(tmp_path: Path) -> None:
    login = write_login(tmp_path, "http://127.0.0.1:9")
    words = ("capture", "--every", "1s", "--for", "2s", "-O", str(tmp_path / "series"), "--kubeconfig", str(login))
    assert trimtab(*words).exit_code == 3


def test_old_files_of_a_series_are_deleted_and_others_stay(kubeconfig: str, tmp_path: Path) -> None:
    folder = tmp_path / "series"
    folder.mkdir()
    for name in ("2020-01-01T000000Z.rounds.gz", "notes.rounds.gz", "2020-01-01T000000Z.txt"):
        (folder / name).touch()
    words = ("--every", "1s", "--for", "1s", "--delete-after", "14d", "-O", str(folder), "--kubeconfig", kubeconfig)
    result = trimtab("capture", *words)
    assert result.exit_code == 0, result.output
    names = sorted(file.name for file in folder.iterdir())
    assert names[0] == "2020-01-01T000000Z.txt"
    assert names[-1] == "notes.rounds.gz"
    assert len(names) == 3


@pytest.mark.parametrize(
    "words", [("--delete-after", "14d"), ("--every", "1s", "--delete-after", "long", "-O", "series")]
)
def test_how_long_files_stay_needs_a_series_and_a_duration(words: tuple[str, ...]) -> None:
    assert trimtab("capture", *words).exit_code == 2


def test_of_other_namespaces_no_config_map_is_read(kubeconfig: str, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.json" for name in ("all", "own")}
    assert trimtab("capture", "-O", paths["all"], "--kubeconfig", kubeconfig).exit_code == 0
    words = ("--config-maps-in", "nowhere", "-O", paths["own"], "--kubeconfig", kubeconfig)
    assert trimtab("capture", *words).exit_code == 0
    kinds = {name: {item["kind"] for item in yaml.safe_load(path.read_text())["items"]} for name, path in paths.items()}
    assert kinds["all"] - kinds["own"] == {"ConfigMap"}


def test_another_start_writes_another_file_of_the_same_folder(kubeconfig: str, tmp_path: Path) -> None:
    words = ("--every", "1s", "--for", "1s", "-O", str(tmp_path / "series"), "--kubeconfig", kubeconfig)
    assert [trimtab("capture", *words).exit_code for _ in range(2)] == [0, 0]
    assert len(list((tmp_path / "series").iterdir())) == 2


def test_a_single_capture_is_no_folder(kubeconfig: str, tmp_path: Path) -> None:
    assert trimtab("capture", "-O", tmp_path, "--kubeconfig", kubeconfig).exit_code == 2
