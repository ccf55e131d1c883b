import { Readable } from "node:stream";
import { createEvenPacer } from "../../src/pacing/even.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { ReplyAddress } from "../../src/port/events.ts";
import type { Draft, ReplySink } from "../../src/port/sink.ts";

/** A platform that takes everything, also edits of messages from before a crash. `onShown` is told what people see. */
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
    // Everybody reads everything here: what is kept apart is kept apart by the bot.
    mayShow: async () => true,
    isConnected: () => true,
    pause: async () => {},
    close: async () => {},
  };
}
