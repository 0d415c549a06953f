"""Does our Python read priority maps as Go does, with Go's regexp and Go's YAML? On generated maps.

The program is `expander/main.go`; it is built here, and left out with a message where there is no Go.
"""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from trimtab.machines.expander_map import (
    ExpanderMap,
    InvalidMap,
    UnjudgedMap,
    build_priorities,
    demote_groups,
    format_priorities,
    parse_expander_map,
)

SOURCE = Path(__file__).parent / "expander"
COUNT = 6_000
WORDS = ("pool", "a", "z1", "-", "10", "eks", ".", "_", "A", "/")
PIECES = (
    *WORDS,
    *WORDS,
    ".*",
    ".+",
    "^",
    "$",
    "(",
    ")",
    "(?:",
    "|",
    "[a-z]",
    "[^0-9]",
    "[]a]",
    "[z-a]",
    "[a",
    r"\.",
    r"\d",
    r"\W",
    r"\s",
    r"\b",
    r"\8",
    r"\z",
    r"\pL",
    "{2}",
    "{1,3}",
    "{,2}",
    "{",
    "}",
    "*",
    "+",
    "?",
    "*?",
    "++",
    "a{3,1}",
    "(?i)",
    "(?P<n>a)",
    "[[:alpha:]]",
    "[a&&b]",
    "\\",
    r"\Q",
    "^*",
    "()*",
    "x{1001}",
    r"[\d]",
    "[a-b-c]",
    "[a-]",
)
KEYS = (
    *map(str, range(0, 60, 7)),
    "-1",
    "-50",
    "007",
    "0x1F",
    "1_0",
    "1.0",
    "ten",
    "'10'",
    "~",
    "10:30",
    "+5",
    "!!int 3",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go here: `go` is not on the PATH")
    binary = tmp_path_factory.mktemp("expander") / "expander"
    built = subprocess.run(
        [go, "build", "-o", str(binary), "."], cwd=SOURCE, capture_output=True, text=True, check=False
    )
    if built.returncode and "go.yaml.in" in built.stderr:
        pytest.skip(f"Go cannot get its YAML module: {built.stderr.strip()[-200:]}")
    assert built.returncode == 0, built.stderr
    return binary


def asked(program: Path, questions: list[dict[str, object]]) -> list[dict[str, object]]:
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def pattern(draw: random.Random) -> str:
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(0, 5)))


def drawn_map(draw: random.Random) -> str:
    """Mostly as people write it, sometimes not."""
    lines = []
    for key in draw.sample(KEYS[:9] if draw.random() < 0.8 else KEYS, draw.randint(0, 4)):
        patterns = [pattern(draw) for _ in range(draw.randint(0, 3))]
        shape = draw.random()
        if shape < 0.8:
            lines += [f"{key}:", *("- '" + one.replace("'", "''") + "'" for one in patterns)]
        elif shape < 0.9:
            lines.append(f"{key}: [{', '.join(patterns)}]")
        else:
            lines.append(
                f"{key}: {draw.choice(['pool', '{a: b}', '[[a]]', '[1, 2]', '[~]', '3', '|', '&x [a]', '*x', ''])}"
            )
    return "\n".join(lines) + draw.choice(
        ["\n", "", "\n---\n", "\n...\n", "\n# end\n"][: 3 if draw.random() < 0.9 else 5]
    )


def drawn_groups(draw: random.Random) -> list[str]:
    return ["".join(draw.choice(WORDS) for _ in range(draw.randint(1, 5))) for _ in range(draw.randint(1, 6))]


def test_generated_maps_are_read_as_go_reads_them(program: Path) -> None:
    draw = random.Random(19)
    questions = [{"map": drawn_map(draw), "groups": drawn_groups(draw)} for _ in range(COUNT)]
    judged = valid = 0
    for question, answer in zip(questions, asked(program, questions), strict=True):
        text, groups = str(question["map"]), list(question["groups"])  # type: ignore[call-overload]
        expander_map = parse_expander_map(text)
        if isinstance(expander_map, UnjudgedMap):
            continue
        judged += 1
        assert isinstance(expander_map, InvalidMap) is not answer["valid"], (text, expander_map, answer)
        if isinstance(expander_map, ExpanderMap):
            valid += 1
            assert list(expander_map.best_groups(groups)) == answer["best"], (text, groups)
    # What is not judged is told; most maps must be judged, and many of them be valid.
    assert judged > COUNT / 2, judged
    assert valid > COUNT / 10, valid


def test_maps_of_ours_are_always_valid_and_read_alike(program: Path) -> None:
    draw = random.Random(7)
    questions, ours = [], []
    for _ in range(1_000):
        groups = sorted({name + draw.choice(["", "(1)", "+", "$", "[x]"]) for name in drawn_groups(draw)})
        tiers = [[group] for group in groups]
        demoted = draw.sample(groups, len(groups) // 3)
        text = format_priorities(demote_groups(build_priorities(tiers, groups[:1]), demoted))
        questions.append({"map": text, "groups": groups})
        expander_map = parse_expander_map(text)
        assert isinstance(expander_map, ExpanderMap), (text, expander_map)
        ours.append(list(expander_map.best_groups(groups)))
    answers = asked(program, questions)
    assert all(answer["valid"] for answer in answers)
    assert [answer["best"] for answer in answers] == ours
