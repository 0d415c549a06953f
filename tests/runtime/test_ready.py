"""The ready file: whole, or not there."""

import json
from pathlib import Path

from trimtab.runtime import http_pages


def test_it_has_the_facts_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    http_pages.write_ready_file(file, {"port": 1})
    http_pages.write_ready_file(file, {"port": 2})
    assert json.loads(file.read_text()) == {"port": 2}
    assert list(tmp_path.iterdir()) == [file]


def test_nobody_asked_for_one() -> None:
    http_pages.write_ready_file(None, {"port": 1})
