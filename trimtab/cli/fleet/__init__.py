"""The `fleet` verb: what several other verbs answer for one cluster, for many clusters at once."""
