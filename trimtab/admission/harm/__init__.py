"""Do pods fare worse since a policy changes them?

counts   how many pods with a policy's marker were hit, and how many without, over the same length of time
brake    counts → harmful, quiet, or not enough is known
reasons  every code of this folder
"""
