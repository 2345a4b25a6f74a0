"""The routes of all calls but submissions, which `submissions` answers before the framework."""

from fastapi import FastAPI

from ldprecover_interface import paths
from ldprecover_server.http.routes import (
    forms,
    operation,
    page,
    planning,
    reference,
    results,
    rounds,
    series,
)


def install(app: FastAPI) -> None:
    """Add the routes to the application."""
    # Below the path of a round, and at the root for the current round.
    app.include_router(results.router, prefix=paths.ROUND)
    app.include_router(results.router)
    app.include_router(results.round_router)
    for module in (rounds, forms, series, planning, operation, page):
        app.include_router(module.router)
    reference.install(app)
