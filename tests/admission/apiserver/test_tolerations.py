import pytest

from tests.build import toleration
from trimtab.admission.apiserver.pod_classes import merge_tolerations

EQUAL = toleration("z", "1", operator="Equal")
BARE = toleration("z", "1")
ALL = toleration("z", operator="Exists")
SHORT, LONG = (toleration("z", operator="Exists", effect="NoExecute", seconds=seconds) for seconds in (5, 60))


@pytest.mark.parametrize(
    ("pods", "classes", "left"),
    [
        ((), (EQUAL,), (EQUAL,)),
        ((EQUAL,), (EQUAL,), (EQUAL,)),
        ((EQUAL,), (ALL,), (ALL,)),
        ((ALL,), (EQUAL,), (ALL,)),
        ((BARE,), (EQUAL,), (BARE,)),
        ((EQUAL,), (BARE,), (BARE,)),
        ((SHORT,), (LONG,), (LONG,)),
        ((LONG,), (SHORT,), (LONG,)),
        ((BARE, ALL), (), (ALL,)),
        ((toleration(operator="Exists"),), (EQUAL, LONG), (toleration(operator="Exists"),)),
    ],
)
def test_what_another_toleration_covers_is_left_out(pods, classes, left):
    assert merge_tolerations(pods, classes) == left


def test_equal_does_not_cover_a_toleration_without_operator():
    one, other = toleration("z", "1", operator="Equal", effect=""), toleration("z", "1", effect="NoSchedule")
    assert merge_tolerations((one,), (other,)) == (one, other)
