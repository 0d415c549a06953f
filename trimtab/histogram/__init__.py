"""How much was used, in little memory?

A `DailyHistograms` holds the last days of one resource of one container: today dense, the past compressed.
Percentiles come out within 1.6 % of the exact ones, whatever was merged with what.

    histogram,             counts in buckets; days of them
    daily_window
    time_buckets,          peaks of memory by intervals; averages of several pods; kills for want of memory
    pod_averages,
    oom_kills
    batch_history,         usage read at once, moment by moment, and from before
    live_history,
    import_history
    checkpoint             how it is stored
    vpa                    the Vertical Pod Autoscaler's histogram, decay, memory peaks and checkpoints

The VPA's is here to the digit (VPA 1.6, recommender/util and recommender/model): for comparison with ours, for reading
what a VPA knows, and for giving a fresh one a history.
"""
