import type { Arrivals } from "../../pacing/scenarios.ts";
import { startRedis } from "../../support/redis.ts";
import { makeDataDir, type RunningService, startService } from "../../support/service.ts";
import { startPacedUpstream } from "./paced-upstream.ts";
import { openDiscordStage, openSlackStage, type ScaleStage } from "./scale-stages.ts";

const STAGES = new Map<string, () => Promise<ScaleStage>>([
  ["slack", () => openSlackStage(true)],
  ["discord", () => openDiscordStage({ isShared: false })],
]);

/**
 * Opens a platform, one Redis and a model that answers every question alike, and starts processes of the service on
 * them. The arguments of the program choose the platform and the signal that ends processes.
 */
export async function openCrew(
  resources: AsyncDisposableStack,
  answer: Arrivals,
  signals: readonly [NodeJS.Signals, ...NodeJS.Signals[]],
) {
  const [, , platform = "slack", given = signals[0]] = process.argv;
  const open = STAGES.get(platform);
  const signal = signals.find((one) => one === given);
  if (open === undefined || signal === undefined)
    throw new Error(`Choose one of ${[...STAGES.keys()].join(", ")}, and a signal: ${signals.join(" or ")}.`);
  const stage = await open();
  resources.defer(stage.close);
  const redis = await startRedis();
  resources.defer(redis.stop);
  const upstream = await startPacedUpstream(() => answer);
  resources.defer(upstream.close);

  async function start(role: string): Promise<RunningService> {
    const { path, remove } = await makeDataDir();
    resources.defer(remove);
    const gateway = { GATEWAY_BASE_URL: upstream.url, GATEWAY_API_KEY: "none", CHAT_MODEL: "paced" };
    const own = { ...gateway, REDIS_URL: redis.url, ROLE: role, DISCORD_THREADS: "off", ...stage.env };
    const service = await startService(path, own);
    resources.defer(async () => void (await service.end("SIGKILL")));
    return service;
  }

  return { platform, signal, stage, upstream, start };
}
