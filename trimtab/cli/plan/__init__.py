"""Which nodes can go, in which order, where does every pod go, and why does every other node stay?"""
