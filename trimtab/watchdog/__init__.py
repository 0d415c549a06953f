"""Did every running pod come through as policy says, and does any policy harm them?

settings   what can be set, with the reason for each default
seen       what the watches tell, change by change → the World, and since when it is so
origin     policies from a folder
look       one look: values in, everything that will be told out
status     what a PodPolicy's status says
statuses   written when they differ, and not too often
tell       Events on owners, log lines, metrics: one record, many sinks
metrics    the watchdog in numbers
stopping   a harmful policy is put to `warn`; a rehearsal only says so
loop       look, brake, write, tell; again and again
following  the watches, and what they told since the last look
process    one replica: election, pages, watches

It never touches a pod: the only things it writes are a policy's `status`, a harmful policy's `spec.mode`, Events and
its own Lease.
"""
