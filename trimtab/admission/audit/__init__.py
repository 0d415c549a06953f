"""Compares running pods with the policies, and detects policies that harm pods.

original_pod    the stored pod → the pod as submitted, and the failures that its status shows drift           pods of
one template + policies + facts → what the policies would change; all pods in bounded steps causes          the reason
why a pod was admitted without a change stale_overhead  compares stored overhead with the RuntimeClass, and detects who
fills it in findings        the result per policy, per owner and per pod harm            failures with and without a
policy's change → harmful, harmless, or unknown reasons         every reason code of this package
"""
