"""What do we answer to this review, and what will the API server store?"""
