"""What does the API server do to a pod around our webhook, and will it store it?"""
