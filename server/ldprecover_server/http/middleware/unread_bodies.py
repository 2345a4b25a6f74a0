"""Adds `Connection: close` to responses that leave a part of the request body unread."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.http.bodies import has_body


class CloseUnreadBodies:
    """ASGI middleware that closes a connection after a response whose request body was not read.

    The server would take the rest of the body for the next request. The edge lingers, so that the
    client still receives the response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(dict(scope["headers"])):
            await self._app(scope, receive, send)
            return
        is_read = False

        async def receive_body() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def send_response(message: Message) -> None:
            if not is_read and message["type"] == "http.response.start":
                headers = [
                    header for header in message["headers"] if header[0].lower() != b"connection"
                ]
                message = {**message, "headers": [*headers, (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive_body, send_response)
