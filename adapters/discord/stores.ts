import { z } from "zod";
import type { Host } from "../../src/port/module.ts";
import type { SharedParts } from "../../src/port/shares.ts";
import type { DirectChannelStore, LastSession, LastSessionStore } from "./options.ts";

const NAMESPACE = "discord";
const lastSession: z.ZodType<LastSession> = z.object({ id: z.string(), url: z.string(), sequence: z.number() });
const channelIds = z.array(z.string());

export function toLastSessionStore({ open }: Pick<Host, "open">): LastSessionStore {
  const keyv = open(NAMESPACE);
  return {
    read: async () => lastSession.safeParse(await keyv.get<unknown>("session")).data,
    write: async (session) => void (await keyv.set("session", session)),
  };
}

/** Remembers session starts across restarts, because Discord counts them across restarts too. */
export function toTakeTurn({ inTurn }: Pick<Host, "inTurn">): SharedParts["takeTurn"] {
  return (name, everyMs) =>
    inTurn("discord session starts", async (open) => {
      const keyv = open(NAMESPACE);
      const key = `start:${name}`;
      return !(await keyv.has(key)) && (await keyv.set(key, true, everyMs));
    });
}

export function toDirectChannelStore({ open, inTurn }: Pick<Host, "open" | "inTurn">): DirectChannelStore {
  const toKept = (keyv: ReturnType<Host["open"]>) => ({
    read: async () => channelIds.safeParse(await keyv.get<unknown>("directs")).data ?? [],
    write: async (ids: readonly string[]) => void (await keyv.set("directs", ids)),
  });
  return {
    ...toKept(open(NAMESPACE)),
    inTurn: (task) => inTurn("discord directs", (openInTurn) => task(toKept(openInTurn(NAMESPACE)))),
  };
}
