"""One account of the bytes that a server holds for requests it has not answered yet."""

MAX_HELD = 64 * 1024 * 1024
"""Bytes of unfinished requests held at once: a pod's memory must not be for whoever sends half of something."""

ONE_ADDRESS = 2
"""One address may hold the total divided by this: whoever fills its own share leaves the rest to the others."""


class TooManyBodies(Exception):
    """There is no room for so many bytes more, in total or for this address."""

    def __init__(self) -> None:
        super().__init__("too many large bodies are under way")


class BodyBudget:
    """The bytes held for unfinished requests, in total and by client address. For one event loop."""

    def __init__(self, max_bytes: int = MAX_HELD) -> None:
        self.left = max_bytes
        self._max_by_address = max_bytes // ONE_ADDRESS
        self._by_address: dict[str, int] = {}

    def hold(self, address: str, size: int, *, always: bool = False) -> None:
        """Count `size` bytes more. Raises `TooManyBodies`, and counts nothing, where they are too many.

        always: count them however many others are held; for what is small and bounded by the number of connections.
        """
        held = self._by_address.get(address, 0) + size
        if not always and (size > self.left or held > self._max_by_address):
            raise TooManyBodies
        self.left -= size
        self._by_address[address] = held

    def release(self, address: str, size: int) -> None:
        """Give back what `hold` counted."""
        self.left += size
        held = self._by_address.get(address, 0) - size
        if held > 0:
            self._by_address[address] = held
        else:
            self._by_address.pop(address, None)
