"""What every process of Trimtab needs around its work: settings, logs, metrics, HTTP servers, and a graceful
shutdown."""
