"""Is everything paused? What our namespace says."""

import pytest

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.pool import PAUSED, paused


@pytest.mark.parametrize(
    ("labels", "annotations", "stops"),
    [
        ({}, {}, False),
        ({PAUSED: "true"}, {}, True),
        ({}, {PAUSED: "true"}, True),
        ({}, {PAUSED: ""}, True),
        ({}, {PAUSED: "upgrade"}, True),
        ({}, {PAUSED: "False"}, False),
        ({PAUSED: "false"}, {PAUSED: "true"}, True),
    ],
)
def test_a_label_or_an_annotation_pauses_unless_it_says_false(labels, annotations, stops):
    assert bool(paused(Metadata(name="trimtab-system", labels=labels, annotations=annotations))) is stops
