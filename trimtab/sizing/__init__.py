"""What should this container request, judging by what it used?

statistics       is there enough history, and how sure are we?
adaptive         the request that would cost least if recent use came again
adaptive_bounds  that request within its bounds, and what makes it doubtful
request          which number of the usage becomes the request, within everything that bounds it, and why
cost             what the difference costs in a month
recommendation   usage as the recommendations that others read
reasons          every code of this package
"""
