"""The `report` verb: several printed reports as one, with their sums first."""
