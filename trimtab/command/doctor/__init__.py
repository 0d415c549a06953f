"""Is everything wired? What was read, as values; what is wrong with it, and what mends it.

seen        what was read: each thing as it stands, absent, or Unreadable with why
finding     one finding: severity, reason, fix
checks/     what is asked of it, one file per subject; pure
judge       all checks, in order
look        the door: reads, asks for rights, creates pods that are not stored
trials      those pods, and how the answers are read
rights      what the processes' accounts must be allowed
report, draw, verb
"""
