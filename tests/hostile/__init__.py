"""What somebody with small rights may send us to make us slow: shapes of pods, documents and node annotations.

pods        pods that grow in one direction each, as an API server would let them through to a webhook
documents   policies, pools and node annotations, likewise
world       policies that use every action, and a namespace with everything that decisions read
cost        what a call costs, counted and not timed
"""
