import { type APIMessage, Routes } from "discord.js";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import type { OptionalCalls } from "../api/optional-calls.ts";

/** Discord's most for one call. */
export const PAGE = 100;
/** Longest wait for a page. */
const PAGE_MS = 5_000;

/** Newest first, as Discord lists them; undefined where it wants no such call now. */
export async function readPage(
  channelId: string,
  from: Record<string, string>,
  limit: number,
  calls: OptionalCalls,
  signal: AbortSignal,
): Promise<APIMessage[] | undefined> {
  const query = new URLSearchParams({ ...from, limit: String(limit) });
  const answer = await calls.call(
    channelId,
    { method: "GET", route: Routes.channelMessages(channelId), query },
    signal,
  );
  return answer?.data as APIMessage[] | undefined;
}

/** Reads the messages of a channel that stand above one of them, newest first, as `readPage` does. */
export type ReadAboveInChannel = (
  channelId: string,
  messageId: string,
  count: number,
  signal: AbortSignal,
) => Promise<APIMessage[] | undefined>;

/** A page for everybody who asked for it before it was read. */
interface Shared {
  newestId: string;
  count: number;
  isForMany: boolean;
  page: Promise<APIMessage[] | undefined>;
}

/**
 * Lets questions that come while a page is read share the next page, because Discord answers the calls of one channel
 * one after another: five questions at once take at most two calls.
 */
export function createReadAboveInChannel(calls: OptionalCalls): ReadAboveInChannel {
  const reading = new Map<string, Promise<unknown>>();
  const waiting = new Map<string, Shared>();

  function open(channelId: string, newestId: string, count: number): Shared {
    const read = () => {
      waiting.delete(channelId);
      const limit = shared.isForMany ? PAGE : shared.count;
      return readPage(channelId, { before: shared.newestId }, limit, calls, AbortSignal.timeout(PAGE_MS));
    };
    const page = (reading.get(channelId) ?? Promise.resolve()).then(read);
    const shared: Shared = { newestId, count, isForMany: false, page };
    const over: Promise<unknown> = page
      .catch(() => {})
      .then(() => reading.get(channelId) === over && reading.delete(channelId));
    reading.set(channelId, over);
    waiting.set(channelId, shared);
    return shared;
  }

  return async (channelId, messageId, count, signal) => {
    const there = waiting.get(channelId);
    const shared = there ?? open(channelId, messageId, count);
    if (there !== undefined) {
      there.isForMany = true;
      if (BigInt(messageId) > BigInt(there.newestId)) there.newestId = messageId;
    }
    const page = await untilAborted(shared.page, signal);
    const above = page?.filter(({ id }) => BigInt(id) < BigInt(messageId)).slice(0, count);
    const isCut = shared.isForMany && page?.length === PAGE && (above?.length ?? 0) < count;
    return isCut ? readPage(channelId, { before: messageId }, count, calls, signal) : above;
  };
}
