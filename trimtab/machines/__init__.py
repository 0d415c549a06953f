"""What does a node cost?

prices   the table of list prices, effective prices in OpenCost's CSV form, and the price of one node from them
"""
