"""An attribute is computed once for each object, when it is first read."""

from trimtab.policy.pod_context import computed_property


class Counted:
    def __init__(self):
        self.calls = 0

    @computed_property
    def answer(self):
        """What was found."""
        self.calls += 1
        return self.calls * 10


def test_it_is_computed_when_it_is_first_read_and_kept():
    counted = Counted()
    assert (counted.calls, counted.answer, counted.answer, counted.calls) == (0, 10, 10, 1)


def test_each_object_has_its_own():
    first, second = Counted(), Counted()
    assert first.answer == 10
    assert second.calls == 0


def test_what_is_put_where_it_is_kept_is_not_computed():
    counted = Counted()
    counted.__dict__["answer"] = 7
    assert (counted.answer, counted.calls) == (7, 0)


def test_it_keeps_the_words_of_the_function():
    assert Counted.__dict__["answer"].__doc__ == "What was found."
