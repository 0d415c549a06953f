"""What may be done to a pod, and when?"""
