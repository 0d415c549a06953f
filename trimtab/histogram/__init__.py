"""Histograms of usage that need little memory.

A `DailyHistograms` holds the last days of one resource of one container: today's histogram is not compressed, those of
past days are. Percentiles are within 1.6 % of the exact ones, in whatever order histograms were merged.

    histogram,             counts by bucket; a window of days of them
    daily_window
    time_buckets,          memory peaks by interval; averages of single pods; OOM kills
    pod_averages,
    oom_kills
    batch_history,         usage read at once, sampled over time, and restored from stored texts
    live_history,
    import_history
    checkpoint             the stored form
    daily_rows             one day of one container as a row of a table, for histories of many clusters
    vpa, vpa_estimators    the Vertical Pod Autoscaler's histogram, decay, memory peaks, checkpoints and estimators

The VPA's own histogram is reproduced exactly (VPA 1.6, recommender/util and recommender/model): to compare it with
Trimtab's, to read the history of a running VPA, and to give a history to a new VPA.
"""
