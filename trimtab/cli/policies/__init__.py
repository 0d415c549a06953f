"""The `policies` verb: it checks, tests, lists, explains and compiles policies, and prints their schema."""
