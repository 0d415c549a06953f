"""The table of runtimes: its patterns, and what belongs to one row only."""

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.runtime_patterns import Runtime, TextPattern
from trimtab.cluster.runtimes import RUNTIMES


def patterns_of(runtime: Runtime) -> list[TextPattern]:
    settings = [pattern for setting in runtime.settings for pattern in setting.options]
    return [*runtime.limit_options, *runtime.options, *runtime.overriding_options, *settings]


PATTERNS = [pattern for runtime in RUNTIMES for pattern in patterns_of(runtime)]


@given(st.data())
def test_each_match_of_a_pattern_contains_its_literal(data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from([one for one in PATTERNS if one.expression]))
    text = data.draw(st.from_regex(pattern.expression, fullmatch=True))
    assert any(literal in text for literal in pattern.literals)


SIZES = [
    (setting, pattern)
    for runtime in RUNTIMES
    for setting in runtime.settings
    if not setting.is_switch
    for pattern in setting.options or [TextPattern("", setting.value)]
]
"""(setting that tells a size, pattern of its option or of the whole value of its variable)."""


@given(st.data())
def test_neither_zero_nor_nothing_is_a_size(data: st.DataObject) -> None:
    setting, pattern = data.draw(st.sampled_from(SIZES))
    if setting.variable:
        assert [zero for zero in ("", "0", "00", "0.0", "0Gi", "0x0") if re.fullmatch(pattern.expression, zero)] == []
        return
    text = data.draw(st.from_regex(pattern.expression, fullmatch=True))
    # Any other text may stand for a number that is not in the pod, as `$(HEAP)` does.
    if text[-1].isdigit():
        zero = re.sub("[0-9]", "0", text)
        assert re.search(pattern.expression, zero) is None, zero
    assert re.search(pattern.expression, pattern.literal + "=") is None


def test_each_row_has_a_name_of_its_own_and_a_source() -> None:
    assert Counter(one.name for one in RUNTIMES).most_common(1)[0][1] == 1
    assert all(one.source for one in RUNTIMES)


def test_a_suffix_of_files_belongs_to_one_runtime() -> None:
    files = Counter(name for one in RUNTIMES for name in one.files)
    assert files.most_common(1)[0][1] == 1


def test_patterns_are_valid_for_the_api_server_too() -> None:
    """RE2 knows neither what is ahead nor what is behind, and no references."""
    expressions = [
        *(one.expression for one in PATTERNS),
        *(one.variable for one in RUNTIMES),
        *(telling.expression for one in RUNTIMES for telling in one.telling_values),
    ]
    assert [text for text in expressions if re.search(r"\(\?[=!<P]|\\[1-9]", text)] == []
