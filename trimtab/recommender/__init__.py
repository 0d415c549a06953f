"""What does every container use, and who is told?

settings     what can be set, with the reason for each default
following    the watches: whose pod is it, and what was killed for want of memory
collecting   usage into the diary: the metrics API moment by moment, or Prometheus with all it has
cabinet      shards among ConfigMaps: few writes, nothing nowhere, what is damaged kept aside
shelf        ConfigMaps of our namespace
checkpoints  the diary, kept
publishing   recommendations, written where they changed beyond a tolerance
loop         collect, publish, keep; again and again
metrics      the recommender in numbers
process      one replica: election, pages, watches; or one round and the end

It touches no pod and no workload: the only things it writes are ConfigMaps of its own and its Lease.
"""
