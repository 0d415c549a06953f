"""Connections to clusters whose certificate authority is older than Python 3.13's rules.

Since 3.13 a default context asks for VERIFY_X509_STRICT (docs.python.org, ssl.create_default_context), and urllib3
follows: an authority that was made without keyUsage, as many clusters' were, is refused. Go's clients, and with them
everything else that talks to that cluster, accept it. So we take exactly that flag off, and nothing else.
"""

import ssl

from kubernetes.client import ApiClient
from urllib3.util.ssl_ import create_urllib3_context


def lenient(api: ApiClient) -> None:
    """Make the client's connections as strict as Go's. It loads authority and certificates into our context itself."""
    verify = ssl.CERT_REQUIRED if api.configuration.verify_ssl else ssl.CERT_NONE
    context = create_urllib3_context(cert_reqs=verify)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    api.rest_client.pool_manager.connection_pool_kw["ssl_context"] = context
