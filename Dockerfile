# docker build -t palaver . && docker run --env-file .env -p 127.0.0.1:3000:3000 -v palaver:/data palaver
FROM node:26.10.0-slim AS parts
WORKDIR /palaver
COPY . .
RUN sh .ci/image.sh /image && chown 1000:1000 /image/data

# Only Node, the libraries it loads and the service: no shell for an attacker, and nothing else to update.
FROM scratch
COPY --from=parts /image /
ENV PATH=/usr/local/bin HOME=/tmp NODE_ENV=production
# Inside a container, 127.0.0.1 is only the container. The published port decides who can reach it. Without Slack or
# Discord the page is on, and needs LOCAL_PASSWORD.
ENV HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
WORKDIR /app
USER 1000:1000
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Without a shell in between, SIGTERM reaches Node, which needs up to SHUTDOWN_GRACE_SECONDS to finish its answers.
# Stop the container with a longer limit (docker stop -t 40).
CMD ["node", "--disable-warning=ExperimentalWarning", "src/main.ts"]
