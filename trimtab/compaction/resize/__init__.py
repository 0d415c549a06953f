"""Resizes pods that run, in place: what policies want of them, in waves that are verified and reverted if they harm.

types           the values: a change of one container, a proposal for one pod, a refusal with its reason
propose         running pods and what policies want → proposals and refusals
records         what stands in a pool's state: resizes in progress, each with what was there before; back-offs
state_machine   records and the observed pods → the next steps: resize, revert, replace, forget
held            what pods in verification still count with: a revert must stay possible
plan_resizes    which resizes empty which node: a plan with and without them

The contract between these modules and a process that acts:

1. Each round the process reads `ResizablePod`s, asks `propose_resizes` what may be resized, and `ResizePlanner` for the
   next steps of each pool.
2. Before it writes a resize it adds the `OpenResize` of the step to the pool's state and saves that state: what was
   there before is then known, and authentic, whatever happens to the process.
3. It writes the requests of the step through the `resize` subresource, on the pod's uid and resourceVersion. A conflict
   or a missing pod is no error: the next round decides again. A rejection is a `Rejected` outcome of the record.
4. All later steps follow from the record and the pod as it is: no step depends on what this process remembers.
5. The planner of drains reads the inventory through `with_held_requests`.
"""
