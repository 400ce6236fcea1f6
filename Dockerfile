# The image of a service: docker build --build-arg SERVICE=gateway --tag proctor-gateway .
# SERVICE is gateway, scheduler, results or worker (of providers; Dockerfile.vllm makes that of vLLM).
# BASE is a Debian with Python 3.11 or newer. Without an index, a folder `wheelhouse` holds the wheels (PIP_NO_INDEX=1).
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
ARG SERVICE
ARG PIP_NO_INDEX=
WORKDIR /src
# A wheelhouse may be missing, so it is named by a pattern.
COPY constraints.txt wheelhous[e] /wheels/
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY proctor proctor
COPY services services
COPY suites suites
ENV PIP_FIND_LINKS=/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# The scheduler loads the data sets of suites from the hub, and a worker may make its sandboxes as pods. pip stays out of
# the image.
RUN test -n "$SERVICE" \
    && python3 -m venv /opt/proctor \
    && case "$SERVICE" in scheduler) extras=scheduler,hub ;; worker) extras=worker,kubernetes ;; *) extras=$SERVICE ;; esac \
    && /opt/proctor/bin/pip install -c constraints.txt ".[$extras]" \
    && python3 -m venv /opt/sbom && /opt/sbom/bin/pip install "cyclonedx-bom>=7,<8" \
    && /opt/sbom/bin/cyclonedx-py environment /opt/proctor/bin/python --of JSON -o /opt/proctor/sbom.json \
    && dpkg-query -W > /opt/proctor/debian-packages.txt \
    && /opt/proctor/bin/python -m pip uninstall -y pip setuptools

FROM ${BASE}
ARG SERVICE
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="proctor-${SERVICE}" \
      org.opencontainers.image.description="Proctor examines language models" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/proctor /opt/proctor
# A named volume of Docker takes the owner of the folder that it is mounted over.
RUN install -d -o 10001 -g 10001 /var/lib/proctor
ENV PATH=/opt/proctor/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SERVICE=${SERVICE}
USER 10001:10001
WORKDIR /tmp
# Kubernetes probes it.
HEALTHCHECK NONE
CMD ["sh", "-c", "exec python3 -P -m services.$SERVICE"]
