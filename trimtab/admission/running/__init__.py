"""Did this running pod come through admission as policy says?

submitted  the stored pod → the pod as it was submitted, as far as that can be known; pods that are decided alike
incident   what befell a pod, as its status tells: killed for memory, evicted by a node in need, no node takes it
standing   pods alike + policies + facts → what policy says of them, and what they lack
why        why did they come through without it?
overhead   is the stored overhead the class's, and who fills it in: the API server, or nobody?
survey     all pods, looked at in bounded steps; what was decided once is remembered while nothing changed
report     what came of it: per policy, per owner, per pod
reasons    every code of this folder
"""
