"""Did each running pod come through admission as policy says, and does any policy harm pods?

original_pod    the stored pod → the pod as it was submitted, and what its status says of failures
drift           pods alike + policies + facts → what policy says of them, and what they lack; all pods in
                bounded steps
causes          why a pod came through without it
stale_overhead  is the stored overhead the class's, and who fills it in?
findings        the result per policy, per owner and per pod
harm            failures with and without a policy's marker → harmful, quiet, or not enough is known
reasons         every code of this folder
"""
