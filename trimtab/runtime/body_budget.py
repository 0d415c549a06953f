"""Limits how many bytes a server holds for requests that it has not answered yet."""

MAX_BYTES = 64 * 1024 * 1024
"""The maximum number of bytes held for unfinished requests, so that they cannot fill the pod's memory."""

ADDRESS_SHARE = 2
"""A divisor: one client address may use at most the total budget divided by this number, so that other addresses can
use the rest."""


class TooManyBodies(Exception):
    """Raised if the budget does not allow that many more bytes, in total or for this address."""

    def __init__(self) -> None:
        super().__init__("the server already processes too many large request bodies")


class BodyBudget:
    """The bytes held for unfinished requests, in total and by client address. It belongs to one event loop."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.available_bytes = max_bytes
        self._max_by_address = max_bytes // ADDRESS_SHARE
        self._by_address: dict[str, int] = {}

    def reserve_bytes(self, address: str, size: int, *, always: bool = False) -> None:
        """Counts `size` more bytes. If they exceed the budget, raises `TooManyBodies` and counts nothing.

        With `always`, the bytes are counted regardless of the budget; this is for small amounts, whose sum is limited
        by the number of connections.
        """
        address_bytes = self._by_address.get(address, 0) + size
        # Checked before anything is counted: a refused body leaves the budget as it was.
        if not always and (size > self.available_bytes or address_bytes > self._max_by_address):
            raise TooManyBodies
        self.available_bytes -= size
        self._by_address[address] = address_bytes

    def release_bytes(self, address: str, size: int) -> None:
        """Subtracts bytes that are no longer held."""
        self.available_bytes += size
        address_bytes = self._by_address.get(address, 0) - size
        if address_bytes > 0:
            self._by_address[address] = address_bytes
        else:
            self._by_address.pop(address, None)
