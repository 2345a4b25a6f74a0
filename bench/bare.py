"""The limit that ingest is measured against: a FastAPI route that reads the body and answers."""

from fastapi import FastAPI, Request

app = FastAPI()


@app.post("/reports")
async def reports(request: Request) -> dict[str, object]:
    """Answer as the server does; nothing is checked, counted or stored."""
    await request.body()
    return {"round": "x", "accepted": 1, "duplicate": False}
