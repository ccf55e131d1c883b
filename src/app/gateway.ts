import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { createGateway, type Gateway } from "../gateway/client.ts";
import { type GatewayHealth, type GatewayProblem, watchGateway } from "../gateway/health.ts";
import type { PauseBoard } from "../gateway/retry.ts";

export interface OpenGateway {
  client: Gateway;
  /** Undefined for the embedded sandbox, which is what it is configured to be. */
  health: GatewayHealth | undefined;
  close(): Promise<void>;
}

/** The configured gateway, or else the embedded sandbox, which fetches files of `reachable` origins as they come. */
export async function openGateway(
  { gateway: { baseUrl, apiKey, chatModel, imageModel, imageKeyHeader, extraBody } }: Config,
  reachable: readonly string[],
  onProblem: (problem: GatewayProblem | undefined) => void,
  pauses: PauseBoard | undefined,
  log: Logger,
): Promise<OpenGateway> {
  const options = { ...(imageKeyHeader !== undefined && { imageKeyHeader }), extraBody, log };
  if (baseUrl === undefined) {
    const sandbox = await startEmbeddedSandbox(reachable, log);
    const client = createGateway({ ...options, baseUrl: sandbox.url, apiKey: "sk-sandbox-all" });
    const close = async () => {
      await client.close();
      await sandbox.close();
    };
    return { client, health: undefined, close };
  }
  const gateway = createGateway({ ...options, baseUrl, apiKey, ...(pauses && { pauses }) });
  const health = watchGateway({ gateway, baseUrl, chatModel, imageModel, log, onChange: onProblem });
  return { client: health.heard, health, close: gateway.close };
}

/** It takes links as if it were far away, except to the `reachable` origins; more may be added while it runs. */
async function startEmbeddedSandbox(reachable: readonly string[], log: Logger) {
  const { startSandbox } = await import("../sandbox/server.ts");
  const sandbox = await startSandbox({
    host: "127.0.0.1",
    port: 0,
    trustedFileOrigins: reachable,
    log: log.child({ part: "sandbox" }),
  });
  log.info("No GATEWAY_BASE_URL is set: the embedded sandbox gateway answers. It needs no key and is no real model.");
  return sandbox;
}
