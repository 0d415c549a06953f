"""The budget of bytes that a server holds for requests that it has not answered yet."""

MAX_BYTES = 64 * 1024 * 1024
"""Maximum bytes of unfinished requests: incomplete requests must not fill the pod's memory."""

ADDRESS_SHARE = 2
"""One client address may hold the total divided by this number, so that one client leaves the rest to the others."""


class TooManyBodies(Exception):
    """The budget has no room for that many more bytes, in total or for this address."""

    def __init__(self) -> None:
        super().__init__("the server already processes too many large request bodies")


class BodyBudget:
    """The bytes held for unfinished requests, in total and by client address. For one event loop."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.available_bytes = max_bytes
        self._max_by_address = max_bytes // ADDRESS_SHARE
        self._by_address: dict[str, int] = {}

    def reserve_bytes(self, address: str, size: int, *, always: bool = False) -> None:
        """Counts `size` more bytes. Raises `TooManyBodies`, and counts nothing, if they exceed the budget.

        always: count them regardless of the budget; for small amounts that the number of connections bounds.
        """
        address_bytes = self._by_address.get(address, 0) + size
        # Checked before anything is counted: a refused body leaves the budget as it was.
        if not always and (size > self.available_bytes or address_bytes > self._max_by_address):
            raise TooManyBodies
        self.available_bytes -= size
        self._by_address[address] = address_bytes

    def release_bytes(self, address: str, size: int) -> None:
        """Returns counted bytes to the budget."""
        self.available_bytes += size
        address_bytes = self._by_address.get(address, 0) - size
        if address_bytes > 0:
            self._by_address[address] = address_bytes
        else:
            self._by_address.pop(address, None)
