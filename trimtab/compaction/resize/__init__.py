"""Resizes running pods in place, as policies want. Pods are resized in waves; each wave is verified, and reverted if it
does harm.

types           the values: a change of one container, a proposal for one pod, a refusal with its reason
propose         running pods and what policies want → proposals and refusals
records         the resizes in a pool's state: those in progress, with the earlier requests of each pod; back-offs
state_machine   records and the observed pods → the next steps: resize, revert, replace, forget
held            the requests that count for pods in verification, so that a revert stays possible
plan_resizes    which resizes empty which node: a plan with and without them

A process that resizes pods must follow these rules:

1. In each round, the process reads `ResizablePod`s, asks `propose_resizes` what may be resized, and asks
   `ResizePlanner` for the next steps of each pool.
2. Before it writes a resize, it adds the `OpenResize` of the step to the pool's state and saves that state. So the
   pod's earlier requests are known, and signed, even if the process is killed.
3. It writes the requests of the step through the `resize` subresource, with the pod's uid and resourceVersion. A
   conflict or a missing pod is no error: the next round decides again. A rejection is recorded with `reject_step`.
4. All later steps follow from the record and from the pod as it is: no step depends on what the process remembers.
5. The planner of drains reads the inventory through `with_held_requests`.
"""
