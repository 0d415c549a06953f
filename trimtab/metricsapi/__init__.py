"""Serves `custom.metrics.k8s.io/v1beta2` for pods: an HPA scales by request rate while a VPA sizes cpu and memory.

settings               the process's settings, with the reason for each default
rules                  the rules of served metrics, validated
exposition             series of a scraped body, read while it arrives
samples                samples → rates and gauges: resets, gaps, stale values
pacing                 which target is scraped when
targets, scraper       the pages of pods, and one scrape: TLS, bearer, gzip, limits
queries                samples from Prometheus
collector              what is due is started; requests are answered from memory
api_request            what a client asks for, from path and query
documents              discovery, values and Status as JSON
request_header         who asks, as the aggregation layer says
authorization          whether they may, as the API server says
rule_inputs            rules, pods and the aggregation layer's configuration, kept current
asgi, process          routes, and the wiring
metrics                what it exports about itself
"""
