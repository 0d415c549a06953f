"""`trimtab fleet`: the answers of several verbs for many clusters at once."""
