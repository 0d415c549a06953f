"""Is everything paused? What our namespace says."""

import pytest

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.pause_mark import PAUSED_MARK, pause_reason


@pytest.mark.parametrize(
    ("labels", "annotations", "stops"),
    [
        ({}, {}, False),
        ({PAUSED_MARK: "true"}, {}, True),
        ({}, {PAUSED_MARK: "true"}, True),
        ({}, {PAUSED_MARK: ""}, True),
        ({}, {PAUSED_MARK: "upgrade"}, True),
        ({}, {PAUSED_MARK: "False"}, False),
        ({PAUSED_MARK: "false"}, {PAUSED_MARK: "true"}, True),
    ],
)
def test_a_label_or_an_annotation_pauses_unless_it_says_false(labels, annotations, stops):
    assert bool(pause_reason(Metadata(name="trimtab-system", labels=labels, annotations=annotations))) is stops
