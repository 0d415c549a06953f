"""The `recommend` verb: it recommends requests for containers from their usage."""
