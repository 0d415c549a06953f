"""Every route of the service, as a Flask app: what people read, and what any WSGI server can run."""

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from trimtab.runtime.metrics import CONTENT_TYPE
from webhook.handlers import (
    HEALTHZ,
    MAX_BODY,
    MAX_CHECKED,
    MUTATE,
    READYZ,
    VALIDATE,
    HttpReply,
    Service,
    answer,
    probe,
    problem,
)

ROUTES = "POST /mutate, POST /validate, GET /healthz, GET /readyz, GET /metrics"


def create_app(service: Service) -> Flask:
    """The whole service on WSGI. Every reply is JSON but the metrics; no traceback ever leaves it."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    # A path is ours or it is not; a redirect would be one more answer that a caller must understand.
    app.url_map.merge_slashes = False
    _reviews(app, service)
    _states(app, service)
    _refusals(app, service)
    return app


def _reviews(app: Flask, service: Service) -> None:
    @app.post(MUTATE)
    def mutate() -> Response:
        return _response(answer(service, MUTATE, request.content_type or "", _body()))

    @app.post(VALIDATE)
    def validate() -> Response:
        request.max_content_length = MAX_CHECKED
        return _response(answer(service, VALIDATE, request.content_type or "", _body()))


def _states(app: Flask, service: Service) -> None:
    @app.get(HEALTHZ)
    def healthz() -> Response:
        return _response(probe(service, HEALTHZ))

    @app.get(READYZ)
    def readyz() -> Response:
        return _response(probe(service, READYZ))

    @app.get("/metrics")
    def metrics() -> Response:
        return _response(HttpReply(200, service.metrics(), CONTENT_TYPE))


def _refusals(app: Flask, service: Service) -> None:
    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        found = _response(problem(error.code or 500, (error.name or "refused").lower(), ROUTES))
        if allow := dict(error.get_headers()).get("Allow"):
            found.headers["Allow"] = allow
        return found

    @app.errorhandler(Exception)
    def failed(error: Exception) -> Response:
        service.failed(request.path, error)
        return _response(problem(500, "internal error", "see this process's log"))


def _body() -> bytes | None:
    try:
        return request.get_data(cache=False)
    except RequestEntityTooLarge:
        return None


def _response(reply: HttpReply) -> Response:
    return Response(reply.body, status=reply.status, content_type=reply.content_type)
