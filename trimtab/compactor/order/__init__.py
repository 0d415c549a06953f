"""Carries out the drain that a user orders, with the login of the user.

order_reader    the watched cluster as one view, and the records of the order
order_writes    the writes of an order, and how it is released
order_runner    the rounds of an order until it is over
order_rights    whether the login may do all that an order needs
"""
