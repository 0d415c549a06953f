"""What can be seen of the processes: their metrics, and the dashboards that are drawn of them."""
