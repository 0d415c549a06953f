"""How does the Vertical Pod Autoscaler remember usage?

Its histogram, its decay, its peaks of memory and its checkpoints, to the digit (VPA 1.6, recommender/util and
recommender/model): for comparison with ours, for reading what a VPA knows, and for giving a fresh one a history.
"""
