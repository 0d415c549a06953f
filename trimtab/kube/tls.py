"""One TLS context for all connections to a cluster, also to one whose authority is older than Python 3.13's rules.

Since 3.13 a default context asks for VERIFY_X509_STRICT (docs.python.org, ssl.create_default_context), and urllib3
follows: an authority that was made without keyUsage, as many clusters' were, is refused. Go's clients, and with them
everything else that talks to that cluster, accept it. So we take exactly that flag off, and nothing else.

Authority and login are loaded here, once: urllib3 would load them into the context again for every connection, and
two threads that do so at the same moment crash inside OpenSSL (seen with 23 watches that came back together).
"""

import ssl

from kubernetes.client import ApiClient
from urllib3.util.ssl_ import create_urllib3_context


def lenient(api: ApiClient) -> None:
    """Make the client's connections as strict as Go's. Raises OSError where a certificate cannot be read."""
    configuration = api.configuration
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.ssl_ca_cert or configuration.ca_cert_data:
        context.load_verify_locations(configuration.ssl_ca_cert, None, configuration.ca_cert_data)
    else:
        context.load_default_certs()
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    pool = api.rest_client.pool_manager.connection_pool_kw
    for loaded in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
        pool.pop(loaded, None)
    pool["ssl_context"] = context
