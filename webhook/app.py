"""Serves every route of the webhook as a Flask app, for scrapes and for any WSGI server."""

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from trimtab.runtime.metrics import CONTENT_TYPE
from webhook.handlers import HEALTHZ, READYZ, HttpReply, Service, answer_probe, answer_review, problem_reply
from webhook.request_body import MAX_BODY_BYTES, MAX_CHECKED_BYTES, MUTATE, VALIDATE

ROUTES = "POST /mutate, POST /validate, GET /healthz, GET /readyz, GET /metrics"


def create_app(service: Service) -> Flask:
    """Returns the whole service as a WSGI app. Every reply is JSON except the metrics; no traceback is ever sent."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    # No redirect from `//mutate`: the API server does not follow redirects of a webhook.
    app.url_map.merge_slashes = False
    _add_review_routes(app, service)
    _add_state_routes(app, service)
    _add_error_handlers(app, service)
    return app


def _add_review_routes(app: Flask, service: Service) -> None:
    @app.post(MUTATE)
    def mutate() -> Response:
        return _to_flask(answer_review(service, MUTATE, request.content_type or "", _read_body()))

    @app.post(VALIDATE)
    def validate() -> Response:
        request.max_content_length = MAX_CHECKED_BYTES
        return _to_flask(answer_review(service, VALIDATE, request.content_type or "", _read_body()))


def _add_state_routes(app: Flask, service: Service) -> None:
    @app.get(HEALTHZ)
    def healthz() -> Response:
        return _to_flask(answer_probe(service, HEALTHZ))

    @app.get(READYZ)
    def readyz() -> Response:
        return _to_flask(answer_probe(service, READYZ))

    @app.get("/metrics")
    def metrics() -> Response:
        return _to_flask(HttpReply(200, service.metrics(), CONTENT_TYPE))


def _add_error_handlers(app: Flask, service: Service) -> None:
    @app.errorhandler(HTTPException)
    def handle_http_error(error: HTTPException) -> Response:
        response = _to_flask(problem_reply(error.code or 500, (error.name or "refused").lower(), ROUTES))
        if allow := dict(error.get_headers()).get("Allow"):
            response.headers["Allow"] = allow
        return response

    @app.errorhandler(Exception)
    def handle_exception(error: Exception) -> Response:
        service.failed(request.path, error)
        return _to_flask(problem_reply(500, "internal error", "see this process's log"))


def _read_body() -> bytes | None:
    try:
        return request.get_data(cache=False)
    except RequestEntityTooLarge:
        return None


def _to_flask(reply: HttpReply) -> Response:
    return Response(reply.body, status=reply.status, content_type=reply.content_type)
