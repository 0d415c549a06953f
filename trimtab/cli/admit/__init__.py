"""What would become of these pods, and why?"""
