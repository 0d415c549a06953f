"""The JUnit report is well-formed XML whatever a manifest's names hold."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.cli.test_lint import BAD, run_lint


@pytest.mark.parametrize("character", ["\x1b", "\x00", "\x9b", "\ufffe", "<&\"'"])
def test_a_character_that_xml_forbids_does_not_break_the_report(tmp_path: Path, character: str) -> None:
    documents = list(yaml.safe_load_all(Path(BAD).read_text()))
    file = tmp_path / "bad.yaml"
    for document in documents:
        document["metadata"]["name"] = f"web{character}]0;x"
    file.write_text(yaml.safe_dump_all(documents))
    report = run_lint("-f", str(file), "-o", "junit").stdout
    assert ElementTree.fromstring(report).tag == "testsuites"
