import json
from collections.abc import Iterator
from itertools import chain

from tests.autoscaling.replay.simulated_captures import CLUSTER_UID, encode_capture_file, namespace_object
from trimtab.cluster.capture_series import (
    BrokenRound,
    RoundWriter,
    SeriesRound,
    SeriesState,
    list_capture_lines,
    split_lines,
    split_rounds,
)

KUBE_SYSTEM = namespace_object("kube-system", CLUSTER_UID)


def config_map(name: str, text: str, version: str = "1") -> dict[str, object]:
    metadata = {"namespace": "shop", "name": name, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def encode(writer: RoundWriter, at: int, *objects: dict[str, object]) -> list[bytes]:
    text, _ = writer.encode_round(at, encode_capture_file([KUBE_SYSTEM, *objects]))
    return text.splitlines()


def test_a_round_has_only_what_changed() -> None:
    writer = RoundWriter(300)
    first = encode(writer, 0, config_map("a", "1"), config_map("b", "1"))
    second = encode(writer, 300, config_map("a", "1", version="2"), config_map("b", "2"))
    assert len(first) == 2 + 3
    assert [json.loads(line).get("metadata", {}).get("name") for line in second[1:-1]] == ["b"]


def test_an_object_that_is_gone_is_named() -> None:
    writer = RoundWriter(300)
    rounds = chain(encode(writer, 0, config_map("a", "1")), encode(writer, 300))
    state = SeriesState()
    changes = [state.apply_round(one) for one in split_rounds(rounds) if isinstance(one, SeriesRound)]
    assert changes[1].gone == (("ConfigMap", "shop", "a"),)
    assert not changes[1].changed


def test_a_round_without_its_end_is_broken_off() -> None:
    writer = RoundWriter(300)
    lines = [*encode(writer, 0, config_map("a", "1")), *encode(writer, 300, config_map("a", "2"))[:-1]]
    rounds = list(split_rounds(lines))
    assert [type(one) for one in rounds] == [SeriesRound, BrokenRound]


def test_a_lost_line_breaks_its_round() -> None:
    lines = encode(RoundWriter(300), 0, config_map("a", "1"), config_map("b", "1"))
    del lines[2]
    assert [type(one) for one in split_rounds(lines)] == [BrokenRound]


def test_a_file_that_begins_anew_says_what_is_gone() -> None:
    state = SeriesState()
    before = split_rounds(encode(RoundWriter(300), 0, config_map("a", "1"), config_map("b", "1")))
    after = split_rounds(encode(RoundWriter(300), 300, config_map("b", "1")))
    changes = [state.apply_round(one) for one in chain(before, after) if isinstance(one, SeriesRound)]
    assert changes[1].gone == (("ConfigMap", "shop", "a"),)
    assert not changes[1].changed


def test_resource_versions_are_left_out_and_texts_are_not() -> None:
    text = '{"resourceVersion":"7"}'
    content = encode_capture_file([config_map("a", text)])
    lines = [json.loads(line) for line in list_capture_lines(content)]
    assert lines[0]["metadata"] == {"namespace": "shop", "name": "a"}
    assert lines[0]["data"] == {"text": text}


def test_a_line_without_an_end_is_not_read_to_its_end() -> None:
    parts_read = []

    def read_parts() -> Iterator[bytes]:
        for number in range(100):
            parts_read.append(number)
            yield b"x" * (1 << 20)

    rounds = list(split_rounds(split_lines(read_parts())))
    assert [type(one) for one in rounds] == [BrokenRound]
    assert len(parts_read) < 20


def test_a_round_of_very_many_lines_is_not_kept() -> None:
    begin, *_ = encode(RoundWriter(300), 0)
    line = b'{"kind":"Pod","metadata":{"name":"' + b"x" * (1 << 20) + b'"}}'
    rounds = list(split_rounds(chain([begin], (line for _ in range(1000)))))
    assert [type(one) for one in rounds] == [BrokenRound]
    assert rounds[0].line < 600  # type: ignore[union-attr]
