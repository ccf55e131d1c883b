import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { createGateway, type Gateway } from "../gateway/client.ts";
import { type GatewayHealth, type GatewayProblem, namedModels, watchGateway } from "../models/health.ts";

/** The sandbox fails only if a test requests a failure, so failures must not pause its models. */
const NO_PAUSES = { breakerFailures: Number.POSITIVE_INFINITY, maxPauseMs: 0 };

export interface OpenGateway {
  client: Gateway;
  /** Undefined for the embedded sandbox. */
  health: GatewayHealth | undefined;
  secondHealth?: GatewayHealth | undefined;
  /** Returns the number of models that are paused after failures or at the gateway's request. */
  countPaused(): number;
  close(): Promise<void>;
}

export interface OpenGatewayOptions {
  config: Pick<Config, "gateway">;
  /** Origins from which the embedded sandbox fetches files directly. */
  reachable: readonly string[];
  onProblem(problem: GatewayProblem | undefined): void;
  log: Logger;
}

/**
 * Opens the configured gateway, or the embedded sandbox if none is configured, and the optional second gateway that is
 * used while the first is down.
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
    // Users see only problems of the first gateway.
    const onChange = isSecond ? () => {} : onProblem;
    const list = (signal: AbortSignal) => client.listModels(signal, name);
    return watchGateway({ list, baseUrl: address, models: models[name], isSecond, log, onChange });
  };
  const health = watch("first", baseUrl);
  const secondHealth = fallback.gateway && watch("second", fallback.gateway.baseUrl);
  const countPaused = () => paused.values().reduce((sum, count) => sum + count, 0);
  return { client, health, secondHealth, countPaused, close: client.close };
}

/**
 * Starts a sandbox that refuses private links like a remote gateway, except links to `reachable` origins. The caller
 * can add origins to that list later.
 */
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
