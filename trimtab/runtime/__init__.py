"""What does every process of ours need around its work?"""
