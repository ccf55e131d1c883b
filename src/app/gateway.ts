import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { createGateway, type Gateway } from "../gateway/client.ts";
import { type GatewayHealth, type GatewayProblem, namedModels, watchGateway } from "../models/health.ts";

/** The sandbox fails only on request, so a failure must not pause it for others. */
const NO_PAUSES = { breakerFailures: Number.POSITIVE_INFINITY, maxPauseMs: 0 };

export interface OpenGateway {
  client: Gateway;
  /** Undefined for the embedded sandbox, which needs no check. */
  health: GatewayHealth | undefined;
  /** Undefined without a second gateway. */
  secondHealth?: GatewayHealth | undefined;
  /** Returns the number of models that are paused, because they failed or asked for it. */
  countPaused(): number;
  close(): Promise<void>;
}

export interface OpenGatewayOptions {
  config: Pick<Config, "gateway">;
  /** The embedded sandbox fetches files of these origins directly. */
  reachable: readonly string[];
  onProblem(problem: GatewayProblem | undefined): void;
  log: Logger;
}

/**
 * Opens the configured gateway, or else the embedded sandbox, and the fallback that is used while the first is down.
 */
export async function openGateway({ config, reachable, onProblem, log }: OpenGatewayOptions): Promise<OpenGateway> {
  const { baseUrl, apiKey, headers, imageApi, imageKeyHeader, extraBody, fallback } = config.gateway;
  const options = { imageApi, imageKeyHeader, extraBody, fallbackModel: fallback.model, log };
  if (baseUrl === undefined) {
    const sandbox = await startEmbeddedSandbox(reachable, log);
    const client = createGateway({ ...options, limits: NO_PAUSES, baseUrl: sandbox.url, apiKey: "sk-sandbox-all" });
    const close = async () => {
      await client.close();
      await sandbox.close();
    };
    return { client, health: undefined, countPaused: () => 0, close };
  }
  const paused = new Map<string, number>();
  const client = createGateway({
    ...options,
    baseUrl,
    apiKey,
    headers,
    second: fallback.gateway,
    onPaused: (name, count) => void paused.set(name, count),
    onAnswered: (name, model) => (name === "first" ? health : secondHealth)?.answered(model),
  });
  const models = namedModels(config.gateway);
  const watch = (name: "first" | "second", address: string) => {
    const isSecond = name === "second";
    // Users see the problems only of the first gateway.
    const onChange = isSecond ? () => {} : onProblem;
    const list = (signal: AbortSignal) => client.listModels(signal, name);
    return watchGateway({ list, baseUrl: address, models: models[name], isSecond, log, onChange });
  };
  const health = watch("first", baseUrl);
  const secondHealth = fallback.gateway && watch("second", fallback.gateway.baseUrl);
  const countPaused = () => paused.values().reduce((sum, count) => sum + count, 0);
  return { client, health, secondHealth, countPaused, close: client.close };
}

/** Treats links as a remote gateway would, except to `reachable` origins. More origins can be added while it runs. */
async function startEmbeddedSandbox(reachable: readonly string[], log: Logger) {
  const { startSandbox } = await import("../sandbox/server.ts");
  return startSandbox({
    host: "127.0.0.1",
    port: 0,
    trustedFileOrigins: reachable,
    isPractice: true,
    log: log.child({ part: "sandbox" }),
  });
}
