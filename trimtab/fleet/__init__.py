"""Makes the same decisions for many clusters, on one machine or on Spark.

The history of a fleet of clusters consists of daily rows in Parquet files (`usage.daily_store`). An engine splits files
into blocks by container, brings the blocks of each bucket together, and merges and decides there. Both engines run the
same two functions on the same bytes, so they return the same bytes.

    container_blocks      rows by bucket, as Arrow IPC
    engine                what an engine does: a local one, and the choice of one
    engine_spark          Apache Spark as an engine; no other module imports it
    container_decisions   merge, and the request of each container
    run_decisions         the decisions of a whole fleet
    money_report          sums by cluster, team and namespace, in whole micro-dollars
    cluster_digest        a summary of a cluster's snapshot for questions about several clusters
    cluster_merge         which clusters to merge
    like_clusters         groups of like clusters, and the machine types for each group
"""
