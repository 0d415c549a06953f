"""The `savings` verb: what removed nodes saved, by pool and by team."""
