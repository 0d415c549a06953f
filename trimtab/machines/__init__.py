"""What does a node cost?

prices     the table of list prices, and the price of one node: label, settings, table, else unknown
"""
