"""No false error on manifests that work: two published sets, what Trimtab installs, and its examples."""

from pathlib import Path

import pytest

from tests.autoscaling.shipped_manifests import (
    INSTALLATIONS,
    PUBLISHED,
    ROOT,
    SHIPPED,
    find_errors,
    find_problems,
    render_installation,
)


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.name)
def test_a_published_set_has_no_error(file: Path) -> None:
    if not file.exists():
        pytest.skip(f"{file} is not here")
    assert find_errors((file.name, file.read_bytes())) == []


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_is_shipped_has_no_error(file: Path) -> None:
    assert find_errors((file.name, file.read_bytes())) == []


def test_all_that_is_shipped_together_has_no_error() -> None:
    assert find_errors(*((str(file), file.read_bytes()) for file in SHIPPED)) == []


@pytest.mark.parametrize("name", INSTALLATIONS)
def test_what_is_installed_has_no_error_and_budgets_that_let_broken_pods_go(name: str) -> None:
    content = name, render_installation(name)
    assert find_errors(content) == []
    assert not [finding for finding in find_problems(content) if finding.rule in ("L29", "L30", "L31", "L32")]
