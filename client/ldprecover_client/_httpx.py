"""The HTTP library of the client: httpx, or its fork httpx2 where httpx is not installed."""

try:
    import httpx
except ModuleNotFoundError as missing:
    try:
        import httpx2 as httpx  # type: ignore[import-not-found,no-redef]
    except ModuleNotFoundError:
        raise missing from None

__all__ = ("httpx",)
