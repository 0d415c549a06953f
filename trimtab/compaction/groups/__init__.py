"""Moves pods that live and die together: all of them, or none.

group_moves  which groups on several nodes may move, and what their pods on other nodes add to a drain
reasons      the codes
"""
