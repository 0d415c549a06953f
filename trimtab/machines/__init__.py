"""The price of a node.

prices   list prices, effective prices in OpenCost's CSV form, and the price of one node from them
"""
