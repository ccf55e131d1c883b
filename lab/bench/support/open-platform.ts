import { Readable } from "node:stream";
import { createEvenPacer } from "../../../src/pacing/even.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Draft, ReplySink } from "../../../src/port/sink.ts";

/**
 * A platform that accepts everything, even edits to messages from before a crash. Calls `onShown` with each text that
 * people see.
 */
export function createOpenPlatform(
  platform: string,
  onShown: (reply: ReplyAddress, draft: Draft) => void = () => {},
  open: () => Readable = () => Readable.from([]),
): Adapter {
  let posted = 0;
  const show = (reply: ReplyAddress, draft: Draft) => {
    onShown(reply, draft);
    return {};
  };
  const sinkAt = (reply: ReplyAddress): ReplySink => ({
    limits: { maxLength: 100_000, lengthOf: (text) => text.length, maxFileBytes: 1_000_000 },
    budget: { key: `${platform}:${reply.channelId}`, createPacer: () => createEvenPacer({ gapMs: 1 }) },
    post: async (draft, nonce) => ({ ...show(reply, draft), id: `${platform}:${nonce}:${posted++}` }),
    upload: async (_, __, nonce) => ({ id: `${platform}:${nonce}` }),
    edit: async (_, draft) => show(reply, draft),
    remove: async () => {},
    progress: async () => {},
  });
  return {
    platform,
    listen: async () => {},
    sink: sinkAt,
    openAttachment: async () => open(),
    // Everyone can read everything here, so only the bot can keep secrets apart.
    mayShow: async () => true,
    isConnected: () => true,
    pause: async () => {},
    close: async () => {},
  };
}
