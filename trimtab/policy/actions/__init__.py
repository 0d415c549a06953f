"""What can a policy do? One file per action: its settings, and what it would do to one pod.

An action changes nothing. It is asked for each policy that matches, and tells the draft what it wants
(`draft.claim`) or why it leaves something alone (`draft.leave`); the draft keeps who was first.
"""
