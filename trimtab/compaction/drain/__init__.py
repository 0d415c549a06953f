"""What is the next step of a drain, whoever asks?

view        what is seen at one moment
note        what stands on a node that is being emptied
pace        how many nodes of a wave may be emptied right now; begin: which drains begin, and what their notes say
conduct     the next step; actions: what steps there are; hurry: has somebody waited for too long?
untaken     why did the autoscaler not take an empty node?
terms       how patient it all is
memory      what a pool remembers over a restart
"""
