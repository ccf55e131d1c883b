# docker build -t palaver . && docker run --env-file .env -p 127.0.0.1:3000:3000 -v palaver:/data palaver
FROM node:26.10.0-slim AS parts
WORKDIR /palaver
COPY . .
RUN sh .ci/image.sh /image && chown 1000:1000 /image/data

# Node, the libraries it loads and the service: there is no shell in it to break out into, and nothing else to update.
FROM scratch
COPY --from=parts /image /
ENV PATH=/usr/local/bin HOME=/tmp NODE_ENV=production
# Inside a container 127.0.0.1 is the container alone. Whoever may reach the port is decided by where it is published;
# without Slack or Discord the page is on, and wants LOCAL_PASSWORD here.
ENV HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
WORKDIR /app
USER 1000:1000
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# No shell in between: SIGTERM reaches Node, which needs up to SHUTDOWN_GRACE_SECONDS to finish its answers,
# so stop the container with a longer limit (docker stop -t 40).
CMD ["node", "--disable-warning=ExperimentalWarning", "src/main.ts"]
