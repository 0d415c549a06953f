"""Next to an autoscaler that it follows, the compactor ends with no more machines than the autoscaler alone.

On the way there may be more for a while: the compactor leaves a pod that either of the two has moved in peace for an
hour, and with it the node on which the pod now is.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.autoscaling.churn.churn_script import Churn, ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cli.simulate.churn_run import ALONE, FOLLOW, run_variant

SHAPES = generate_shapes()
HOURS = 6
"""The last of them is measured: both have come to rest before, which takes less than three."""


@st.composite
def drawn_churns(draw: st.DrawFn) -> Churn:
    """A small cluster that is too large for its load, in which nothing happens from outside."""
    options = ChurnOptions(
        seed=draw(st.integers(0, 200)),
        hours=HOURS,
        warm_up_seconds=(HOURS - 1) * 3600,
        cores=draw(st.sampled_from((10, 20, 30))),
        fill=draw(st.sampled_from((0.3, 0.4, 0.5, 0.6, 0.7))),
    )
    return replace(draw_churn(options, SHAPES), events=())


@settings(max_examples=6, deadline=None)
@given(drawn_churns())
def test_at_rest_following_has_no_more_machines_than_the_autoscaler_alone(churn: Churn) -> None:
    alone, following = (run_variant(churn, variant).outcome for variant in (ALONE, FOLLOW))
    assert following.core_hours <= alone.core_hours
    assert following.broken == following.cordons_left == 0
