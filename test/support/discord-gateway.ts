import { once } from "node:events";
import { onTestFinished } from "vitest";
import { type RawData, WebSocket } from "ws";
import type { Discord } from "../../lab/discord-sim/simulator.ts";
import type { Payload } from "../../lab/discord-sim/world.ts";

export interface Frame {
  op: number;
  t?: string;
  s?: number;
  d: Payload;
}

/** A gateway connection without the library. It sends only what the test sends. */
export interface RawGateway {
  send(op: number, d: unknown): void;
  /** Resolves to the next matching frame, even if it has already arrived. Drops the frames before it. */
  next(wanted: (frame: Frame) => boolean): Promise<Frame>;
  /** The close code of the connection. */
  readonly closed: Promise<number>;
  close(code: number): void;
}

export async function openGateway(discord: Pick<Discord, "apiUrl">): Promise<RawGateway> {
  const socket = new WebSocket(`${discord.apiUrl.replace("http", "ws").replace("/api", "")}/?v=10&encoding=json`);
  onTestFinished(() => socket.terminate());
  const frames: Frame[] = [];
  let wake = Promise.withResolvers<void>();
  socket.on("message", (raw: RawData) => {
    frames.push(JSON.parse(Buffer.from(raw as Buffer).toString()) as Frame);
    wake.resolve();
    wake = Promise.withResolvers();
  });
  socket.on("error", () => {});
  const closed = new Promise<number>((resolve) => socket.once("close", resolve));
  await once(socket, "open");

  return {
    send: (op, d) => socket.send(JSON.stringify({ op, d })),
    async next(wanted) {
      for (;;) {
        while (frames.length > 0) {
          const frame = frames.shift();
          if (frame !== undefined && wanted(frame)) return frame;
        }
        await wake.promise;
      }
    },
    closed,
    close: (code) => socket.close(code),
  };
}

/** A connection that has identified, and its READY. */
export async function identify(
  discord: Pick<Discord, "apiUrl" | "token">,
  { intents, shard = [0, 1] }: { intents: number; shard?: [number, number] },
): Promise<{ gateway: RawGateway; ready: Frame }> {
  const gateway = await openGateway(discord);
  gateway.send(2, { token: discord.token, intents, shard, properties: {} });
  return { gateway, ready: await gateway.next(({ t }) => t === "READY") };
}
