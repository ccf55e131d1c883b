import type { Logger } from "pino";
import type { Config, FallbackConfig } from "../config/config.ts";
import { createGateway, type Gateway } from "../gateway/client.ts";
import { withFallbacks } from "../gateway/fallback.ts";
import { type GatewayHealth, type GatewayProblem, namedModels, watchGateway } from "../gateway/health.ts";
import { withOptionalParts } from "../gateway/optional-parts.ts";
import type { SharedLimits } from "./shared.ts";

/** The sandbox fails where somebody asks it to, which is no reason to leave it alone. */
const NO_BREAKER = { breakerFailures: Number.POSITIVE_INFINITY };

export interface OpenGateway {
  client: Gateway;
  /** Undefined for the embedded sandbox, which is what it is configured to be. */
  health: GatewayHealth | undefined;
  /** Undefined where there is no second gateway. */
  secondHealth?: GatewayHealth | undefined;
  /** The number of models that are left alone, as they failed or asked for it. */
  countPaused(): number;
  close(): Promise<void>;
}

export interface OpenGatewayOptions {
  config: Pick<Config, "gateway">;
  /** The embedded sandbox fetches files of these origins as they come. */
  reachable: readonly string[];
  onProblem(problem: GatewayProblem | undefined): void;
  /** The pauses that processes tell each other; undefined for a single process. */
  shared: Pick<SharedLimits, "pausesOf"> | undefined;
  log: Logger;
}

/** The configured gateway, or else the embedded sandbox; with what is asked while it is down. */
export async function openGateway({
  config,
  reachable,
  onProblem,
  shared,
  log,
}: OpenGatewayOptions): Promise<OpenGateway> {
  const { baseUrl, apiKey, imageKeyHeader, extraBody, fallback } = config.gateway;
  const options = { imageKeyHeader, extraBody, log };
  const adapt = (gateway: Gateway) => withOptionalParts(gateway, log);
  if (baseUrl === undefined) {
    const sandbox = await startEmbeddedSandbox(reachable, log);
    const first = adapt(
      createGateway({ ...options, limits: NO_BREAKER, baseUrl: sandbox.url, apiKey: "sk-sandbox-all" }),
    );
    const client = withFallbacks({ first, second: undefined, fallbackModel: fallback.model, log });
    const close = async () => {
      await client.close();
      await sandbox.close();
    };
    return { client, health: undefined, countPaused: () => 0, close };
  }
  const paused = new Map<string, number>();
  const models = namedModels(config.gateway);
  const open = (address: NonNullable<FallbackConfig["gateway"]>, name: "first" | "second") => {
    const pauses = shared?.pausesOf(name);
    const gateway = createGateway({ ...options, ...address, pauses, onPaused: (count) => paused.set(name, count) });
    const isSecond = name === "second";
    // People are shown the trouble of the gateway that answers them.
    const onChange = isSecond ? () => {} : onProblem;
    return watchGateway({ gateway, baseUrl: address.baseUrl, models: models[name], isSecond, log, onChange });
  };
  const health = open({ baseUrl, apiKey }, "first");
  const secondHealth = fallback.gateway && open(fallback.gateway, "second");
  const second = secondHealth && adapt(secondHealth.heard);
  const client = withFallbacks({ first: adapt(health.heard), second, fallbackModel: fallback.model, log });
  const countPaused = () => paused.values().reduce((sum, count) => sum + count, 0);
  return { client, health, secondHealth, countPaused, close: client.close };
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
