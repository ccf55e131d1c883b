import { Hono } from "hono";
import type { Logger } from "pino";
import type { Adapter } from "../port/adapter.ts";
import type { Accept } from "../port/events.ts";

/** Shows an operator that messages from a platform arrive: in the log and at `GET /arrivals`. */
export interface Arrivals {
  /** Wraps `accept` to record the adapter's first accepted event. */
  watch(adapter: Pick<Adapter, "platform" | "isOwn">, accept: Accept): Accept;
  /** Serves, for each platform, whether it is connected and whether a message has arrived since the start. */
  routes: Hono;
}

export function createArrivals(
  read: () => readonly Pick<Adapter, "platform" | "isConnected">[],
  log: Logger,
): Arrivals {
  const arrived = new Set<string>();
  const stateOf = ({ platform, isConnected }: Pick<Adapter, "platform" | "isConnected">) => {
    if (arrived.has(platform)) return "heard";
    return isConnected() ? "connected" : "connecting";
  };
  return {
    watch:
      ({ platform, isOwn }, accept) =>
      async (event) => {
        await accept(event);
        if (arrived.has(platform)) return;
        arrived.add(platform);
        const name = platform.charAt(0).toUpperCase() + platform.slice(1);
        if (isOwn !== true) log.info(`The first message from ${name} has arrived`);
      },
    routes: new Hono().get("/arrivals", (c) =>
      c.json(Object.fromEntries(read().map((adapter) => [adapter.platform, stateOf(adapter)])), 200, {
        "Cache-Control": "no-store",
      }),
    ),
  };
}
