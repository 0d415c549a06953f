"""Five nodes of which two could go, and a loop that has begun, or is about to."""

from tests.compactor.played import Played, process
from trimtab.compactor.loop import Loop


def five() -> Played:
    """Five nodes of four cores, ten pods of three apps: two nodes would do."""
    played = Played().with_nodes("n1", "n2", "n3", "n4", "n5")
    played.with_app("web", "n1", "n2", "n3", "n4", allowed=1)
    played.with_app("api", "n2", "n3", "n5", allowed=1)
    return played.with_app("job", "n1", "n4", "n5")


def begun(played: Played) -> tuple[Loop, str]:
    """A process in the middle of a drain, and the drain's node."""
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    return loop, played.cordoned[0]


def meant() -> tuple[Played, Loop]:
    """A plan was made, and waits for the fresh look before it begins."""
    played = five()
    loop = process(played)
    loop.run_round()
    assert loop.planner.pending_steps is not None
    assert loop.planner.pending_steps.steps
    played.tick()
    return played, loop
