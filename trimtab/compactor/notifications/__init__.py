"""Notifications of what the compactor did and wants, for a chat room or for another program.

messages   which decisions are sent, and their form; pure
sender     sends them from a thread of its own, with retries and a limit
"""
