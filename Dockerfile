# The command `ldprecover` with everything a server and a simulation need. Any Python image of Debian serves as the
# base, given by --build-arg BASE=…; this one is 3.12.14.
ARG BASE=python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

FROM ${BASE} AS wheel
COPY deploy/build.lock /locks/
RUN pip install --disable-pip-version-check --no-cache-dir --no-deps --require-hashes --requirement /locks/build.lock
WORKDIR /source
COPY . .
RUN pip wheel --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir /wheels .

FROM ${BASE} AS environment
# image-fast adds numba and scipy: support counting several times faster, and certificates from reports, in an image
# thrice as large.
ARG LOCK=image
COPY deploy/${LOCK}.lock /locks/
RUN python -m venv --without-pip /opt/ldprecover \
    && pip --python /opt/ldprecover/bin/python install --disable-pip-version-check --no-cache-dir \
       --no-deps --require-hashes --requirement /locks/${LOCK}.lock
COPY --from=wheel /wheels/*.whl /wheels/
RUN pip --python /opt/ldprecover/bin/python install --disable-pip-version-check --no-cache-dir --no-index --no-deps \
    /wheels/*.whl

FROM ${BASE}
RUN groupadd --gid 10001 ldprecover \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/ldprecover ldprecover \
    && mkdir -p /var/lib/ldprecover /var/tmp/ldprecover /run/ldprecover/database \
       /run/ldprecover/keys/admin /run/ldprecover/keys/analyst /run/ldprecover/keys/report \
    && chown -R ldprecover:ldprecover /var/lib/ldprecover /var/tmp/ldprecover /run/ldprecover
COPY --from=environment /opt/ldprecover /opt/ldprecover
ENV PATH=/opt/ldprecover/bin:$PATH PYTHONUNBUFFERED=1 LDPRECOVER_HOST=0.0.0.0
# Folder of the SQLite file, unless another database is named.
WORKDIR /var/lib/ldprecover
USER 10001:10001
EXPOSE 8000
# urllib.request would ask the proxy that the environment may name.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import http.client, os; server = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('LDPRECOVER_PORT', 8000)), timeout=4); server.request('GET', '/healthz'); raise SystemExit(server.getresponse().status != 200)"]
ENTRYPOINT ["ldprecover"]
CMD ["serve"]
