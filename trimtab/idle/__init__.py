"""Finds what a cluster pays for and does not need: objects that no pod refers to, hours without use, claims that are
mostly empty.

    object_mentions   which object names which: pods, their templates, and the text of everything else
    unjudged_objects  objects that are read without being named: operators', Helm's, the platform's
    orphans           volumes, claims, load balancers, ConfigMaps, Secrets and nodes that nothing names
    quiet_hours       usage by weekday and hour, and the hours in which a workload could sleep
    sleep_schedules   the sleep that a cluster already has: kube-green, KEDA, kube-downscaler
    sleep_proposals   kube-green and HPA objects for the quiet hours
    claim_usage       claims that are mostly empty, or of a class that costs more than another
    storage_prices    prices of volumes

Everything here is a function of values and only reports: nothing is deleted or scaled.
"""
