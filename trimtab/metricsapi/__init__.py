"""Serves `custom.metrics.k8s.io/v1beta2` for pods, so that an HPA can scale by request rate while a VPA sizes cpu and
memory.

settings               the process's settings, with the reason for each default
rules                  the rules of served metrics, validated
exposition             series of a scraped body, read while it arrives
samples                samples → rates and gauges: resets, gaps, stale values
pacing                 which target is scraped when
targets, scraper       the pages of pods, and one scrape: TLS, bearer tokens, gzip, limits
http_response          the head and the framing of a pod's response, with limits
queries                samples from Prometheus
collector              starts scrapes and queries when they are due; answers requests from memory
hpa_proposal           an HPA for a metric, with a threshold from history
api_request            what a client asks for, from path and query
documents              discovery, values and Status as JSON
request_header         which user sends a request, according to the aggregation layer
authorization          whether the user may read the metric, according to the API server
rule_inputs            rules, pods and the aggregation layer's configuration, kept current
asgi, process          routes, and the wiring
metrics                what the process exports about itself
"""
