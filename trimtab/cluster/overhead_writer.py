"""The component that writes the overhead of pods: the API server's RuntimeClass admission plugin or, if that is off,
Trimtab's webhook."""

from typing import Final, Literal

OverheadWriter = Literal["server", "webhook"]
BY_SERVER: Final = "server"
BY_WEBHOOK: Final = "webhook"
