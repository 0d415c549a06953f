"""What should this container ask for, judging by what it used?

enough     is there history to speak from, and how sure are we?
rule       which number of the usage becomes the request
request    that number within everything that bounds it, and why
money      what the difference costs in a month
estimate   what the VPA's recommender would have said, for comparison
publish    usage as the recommendations that others read
"""
