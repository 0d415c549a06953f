"""A fresh VPA is given a history, and says what one would that had seen it all."""

import pytest

from trimtab.sketch.hours import DAY
from trimtab.sketch.vpa import checkpoint, export
from trimtab.sketch.vpa.container import Container
from trimtab.sketch.window import Window

START = 20_000 * DAY


def lived(days: int) -> tuple[Container, Window, Window]:
    """Cpu between 100m and 400m by the hour, memory that grows by the day; seen by a VPA and by us."""
    vpa, cpu, memory = Container(), Window(), Window()
    for at in range(START, START + days * DAY, 600):
        cores, held = 0.1 + at // 3600 % 4 / 10, 1e8 * (1 + (at - START) // DAY)
        vpa.use_cpu(at, cores)
        vpa.use_memory(at, held)
        cpu.add(at, cores)
        memory.add(at, held)
    return vpa, cpu, memory


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.95])
def test_it_says_what_it_would_have_said(share: float) -> None:
    vpa, cpu, memory = lived(5)
    found = checkpoint.read(checkpoint.write(export.known(cpu, memory)))
    assert found.cpu.percentile(share) == pytest.approx(vpa.cpu.percentile(share), rel=0.06)  # type: ignore[attr-defined]
    assert found.memory.percentile(share) == pytest.approx(vpa.memory.percentile(share), rel=0.06)  # type: ignore[attr-defined]


def test_how_much_was_seen_goes_along() -> None:
    _, cpu, memory = lived(3)
    found = export.known(cpu, memory)
    assert (found.first, found.last, found.samples) == (START, START + 3 * DAY - 600, 3 * 144)


def test_what_used_nothing_at_all_is_a_history_too() -> None:
    cpu = Window()
    cpu.add(START, 0.0)
    assert export.known(cpu, Window()).cpu.percentile(0.9) == pytest.approx(0.01)
