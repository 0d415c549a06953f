"""Carries out the drain that a user orders: with the login of the user, or for a DrainOrder as the compactor.

order_reader    the watched cluster as one view, and the records of the order
order_writes    the writes of an order, and how it is released
order_steps     one round of an order, with any login
order_runner    the rounds of `trimtab drain` until the order is over
order_rights    whether a user may do all that an order needs

order_source       the DrainOrders of the cluster, their status, and what their authors may do
author_witness     since when the admission policy that ties authors to users is in force
order_ledger       what the stored state knows of them
order_acceptance   whether a new one is accepted
order_progress     the next writes of one that was accepted
signed_door        its writes, in the compactor's signed annotations
order_keeper       all of them, as a part of the compactor's rounds
"""
