"""What holds for the next step of every drain and of every resize."""

import pytest

from trimtab.compactor.actuator import ActuatorConflict, ActuatorForbidden, ActuatorUnavailable
from trimtab.compactor.error_guard import ErrorGuard, Failed, Ok
from trimtab.compactor.step_runner import MAX_VIEW_AGE_SECONDS, RETRY_SECONDS, GuardedStep, StepRunner
from trimtab.runtime import log
from trimtab.runtime.graceful_shutdown import GracefulShutdown


def runner() -> StepRunner:
    return StepRunner(ErrorGuard(log.build_logger("error")), GracefulShutdown())


def fail(error: Exception) -> None:
    raise error


def test_a_step_without_a_result_is_told_from_one_that_failed() -> None:
    guard = runner().error_guard
    assert guard.run_guarded("drain", lambda: None) == Ok(None)
    assert guard.run_guarded("drain", lambda: fail(KeyError("x")), about="n1") == Failed("drain n1: KeyError: 'x'")
    assert guard.kinds == {"drain": 1}


def test_the_bug_in_one_step_is_recovered_from_and_the_others_run() -> None:
    steps, done = runner(), list[str]()
    recovered = list[Failed]()
    bug = GuardedStep("n1", lambda: fail(ValueError("odd")), recover=recovered.append)
    steps.run_steps("drain", (bug, GuardedStep("n2", lambda: done.append("n2"))), 0.0).raise_error()
    assert done == ["n2"]
    assert recovered == [Failed("drain n1: ValueError: odd")]


def test_an_error_of_the_server_is_raised_after_the_others_ran() -> None:
    steps, done = runner(), list[str]()
    down = GuardedStep("n1", lambda: fail(ActuatorUnavailable("no answer")))
    changed = GuardedStep("n2", lambda: fail(ActuatorConflict("changed")))
    errors = steps.run_steps("drain", (down, changed, GuardedStep("n3", lambda: done.append("n3"))), 0.0)
    assert done == ["n3"]
    with pytest.raises(ActuatorUnavailable, match="no answer"):
        errors.raise_error()
    assert steps.error_guard.error_count == 0


@pytest.mark.parametrize("waits", [True, False])
def test_a_step_that_the_server_rejects_waits_if_it_says_so(waits: bool) -> None:
    steps = runner()
    step = GuardedStep("n1", lambda: fail(ActuatorForbidden("no")), waits_if_forbidden=waits)
    steps.run_steps("drain", (step,), 100.0)
    assert steps.is_postponed("n1") is waits
    steps.forget_past_waits(100.0 + RETRY_SECONDS)
    assert not steps.is_postponed("n1")


def test_the_server_may_say_how_long_to_wait() -> None:
    steps = runner()
    steps.postpone("uid", 0.0, 60)
    steps.forget_past_waits(59)
    assert steps.is_postponed("uid")
    steps.forget_past_waits(60)
    assert not steps.is_postponed("uid")


def test_nothing_begins_on_an_old_view_or_while_the_process_stops() -> None:
    steps, clock = runner(), [0.0]
    assert steps.may_begin(-1000.0)
    steps.elapsed = lambda: clock[0]
    assert steps.may_begin(0.0)
    clock[0] = MAX_VIEW_AGE_SECONDS + 1
    assert not steps.may_begin(0.0)
    assert steps.may_begin(clock[0])
    steps.shutdown.request_stop()
    assert not steps.may_begin(clock[0])
