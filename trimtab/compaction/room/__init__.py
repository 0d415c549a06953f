"""Makes room for pods on purpose: which few pods have to move, so that a large pod or a gang can start.

eviction_sets  which pods of one node, as few as possible, free what is missing on it
make_room      room for pods that want to run, or a node without pods of workloads
move_turns     which pod moves in which turn
pod_sizes      which pods are large
room_plan      the answer: places and moves, or why there is none
room_search    the places of the pods that want to run, and the moves that make them free
reasons        why there is no room

Nothing here evicts a pod: the moves are advice, and an order can be made of them.
"""
