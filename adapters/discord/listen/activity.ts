import type { APIMessage } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { readCustomId, readCustomIds } from "../write/message-body.ts";

/** An answer that is not seen to grow for this long is taken to be over. */
const QUIET_MS = 120_000;
const MAX_MESSAGES = 2_000;
const MAX_CHANNELS = 1_000;

/**
 * The places where answers are being written at the moment. Seen on the platform itself, by their Stop button, so it
 * does not matter which process writes them.
 */
export interface Activity {
  /** An answer to this message begins. */
  begin(channelId: string, root: string): void;
  /** A message of the bot was posted or edited. */
  see(message: Pick<APIMessage, "id" | "channel_id" | "components" | "message_reference">): void;
  /** A message was deleted: where it was the bot's, its answer is not seen to grow any more. */
  forget(message: Pick<APIMessage, "id" | "channel_id">): void;
  isBusy(channelId: string): boolean;
}

export function createActivity(now: () => number): Activity {
  const growing = new Map<string, Map<string, number>>();
  /** The answer that a message of the bot belongs to; its last edit does not say. */
  const roots = new BoundedMap<string, string>(MAX_MESSAGES);

  function begin(channelId: string, root: string): void {
    const answers = growing.get(channelId) ?? new Map<string, number>();
    growing.set(channelId, answers);
    answers.set(root, now() + QUIET_MS);
    if (growing.size > MAX_CHANNELS) for (const id of growing.keys()) isBusy(id);
  }

  function isBusy(channelId: string): boolean {
    const answers = growing.get(channelId);
    if (answers === undefined) return false;
    for (const [root, until] of answers) if (until <= now()) end(channelId, root);
    return growing.has(channelId);
  }

  function end(channelId: string, root: string): void {
    const answers = growing.get(channelId);
    answers?.delete(root);
    if (answers?.size === 0) growing.delete(channelId);
  }

  return {
    begin,
    see({ id, channel_id, components, message_reference }) {
      const buttons = readCustomIds(components).flatMap((customId) => readCustomId(customId) ?? []);
      const root = buttons[0]?.root ?? roots.get(id) ?? message_reference?.message_id;
      if (root === undefined) return;
      roots.set(id, root);
      if (buttons.some(({ action }) => action === "stop")) begin(channel_id, root);
      else end(channel_id, root);
    },
    forget({ id, channel_id }) {
      const root = roots.get(id);
      roots.delete(id);
      if (root !== undefined) end(channel_id, root);
    },
    isBusy,
  };
}
