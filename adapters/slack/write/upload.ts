import { setTimeout as sleep } from "node:timers/promises";
import { SinkError } from "../../../src/port/errors.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { Draft, OutboundFile, Posted } from "../../../src/port/sink.ts";
import { toAttachments } from "../api/attachments.ts";
import type { ToMark } from "../ids.ts";
import type { Block } from "./blocks.ts";
import { createFileShare, type Delivery, hasWords, toMarkedNames } from "./file-share.ts";
import type { FileStore, Stored } from "./file-store.ts";
import type { Found, Lookup } from "./lookup.ts";
import { isBlockRefusal, type WholeWriter } from "./post-and-update.ts";
import type { Memory } from "./sink-state.ts";

export const MAX_FILES = 10;
/** Far below what Slack takes: it is held in memory. */
export const MAX_FILE_BYTES = 50 * 1024 * 1024;
const MAX_ALT_CHARS = 2_000;
/** What Slack shows inside a message. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif"]);
const BARE: Draft = { markdown: "", buttons: [], streaming: false };

/** Brings files into a conversation: in one message where that can be, with its words behind it where not. */
export interface Uploader {
  /** Rejects with a `SinkError` or a `SlackApiError`; after a time-out the message may still come. */
  upload(delivery: Delivery, signal: AbortSignal): Promise<Posted>;
  /**
   * The message that was made for a delivery. What was begun of one and not finished is no such message: its files are
   * remembered, and the next upload goes on with them.
   */
  find(delivery: Delivery, signal: AbortSignal): Promise<Found | undefined>;
}

export interface UploaderDeps {
  store: FileStore;
  whole: WholeWriter;
  lookup: Lookup;
  memory: Memory;
  toMark: ToMark;
}

export function createUploader(deps: UploaderDeps): Uploader {
  const { store, whole, lookup, memory, toMark } = deps;
  const share = createFileShare(deps);

  /** In the message itself, with words and buttons. Undefined where Slack takes no pictures there: none is shown then. */
  async function showInside(delivery: Delivery, signal: AbortSignal): Promise<Posted | undefined> {
    const { place, files } = delivery;
    const { teamId } = place;
    const stored: Stored[] = [];
    for (const file of files) stored.push(await store.store(teamId, file, file.name, signal));
    // The files are finished first, and then shown.
    await store.complete(teamId, stored, {}, signal);
    const posted = (await areReady(teamId, stored, signal)) ? await postInside(delivery, stored, signal) : undefined;
    if (posted !== undefined) {
      memory.files.set(posted.id, { ids: stored.map(({ id }) => id) });
      return posted;
    }
    memory.noteUntaken("pictures", teamId);
    // Finished without a place, a file cannot be given one any more.
    await store.drop(teamId, stored, signal);
    return undefined;
  }

  async function areReady(teamId: string, stored: readonly Stored[], signal: AbortSignal): Promise<boolean> {
    for (const { id } of stored) {
      const look = await store.waitFor(teamId, id, ({ mimetype }) => mimetype || undefined, signal);
      if (look === "late") return false;
    }
    return true;
  }

  async function postInside(
    { place, caption = BARE, nonce }: Delivery,
    stored: readonly Stored[],
    signal: AbortSignal,
  ): Promise<Posted | undefined> {
    const pictures: Block[] = stored.map(({ id, file }) => ({
      type: "image",
      slack_file: { id },
      alt_text: (file.altText ?? file.name).slice(0, MAX_ALT_CHARS),
    }));
    const brought = { ids: stored.map(({ id }) => id) };
    for (const pauseMs of store.looksMs) {
      try {
        return await whole.post(place, caption, nonce, signal, { pictures, brought });
      } catch (error) {
        // Some picture of it is not ready to be shown, whatever was said of it.
        if (!isBlockRefusal(error)) throw error;
        await sleep(pauseMs, undefined, { signal });
      }
    }
    return undefined;
  }

  async function bring(delivery: Delivery, signal: AbortSignal): Promise<Posted> {
    if (!arePictures(delivery)) return share.asFiles(delivery, signal);
    const mayStandInside = memory.takes("pictures", delivery.place.teamId) && !share.isShared(delivery);
    const posted = mayStandInside ? await showInside(delivery, signal) : undefined;
    return posted ?? share.withWordsBehind(delivery, signal);
  }

  return {
    async upload(delivery, signal) {
      checkFiles(delivery.files);
      const posted = await bring(delivery, signal);
      const ids = memory.files.get(posted.id)?.ids ?? [];
      return { ...posted, attachments: toRefs(delivery, ids) };
    },
    async find(delivery, signal) {
      const { place, caption, nonce, files } = delivery;
      const post = await lookup.findPost(place, nonce, signal, { isFinished: true });
      if (post !== undefined) return { ...post, files: toParts(delivery, post.fileIds) };
      const found = await lookup.findFiles(place, toMarkedNames(files, toMark(nonce)), signal);
      if (found === undefined) return undefined;
      share.noteShared(delivery, { fileIds: found.fileIds, ts: found.ts });
      const isWhole = !arePictures(delivery) || caption === undefined || !hasWords(caption);
      return isWhole ? { ...found, files: toParts(delivery, found.fileIds) } : undefined;
    },
  };
}

function arePictures({ files }: Delivery): boolean {
  return files.every(({ contentType }) => PICTURES.has(contentType));
}

/** Files under the names that they were given here. */
function toParts({ files }: Delivery, ids: readonly string[]): Array<{ id: string; name: string; size: number }> {
  return ids.flatMap((id, index) => {
    const file = files[index];
    return file === undefined ? [] : [{ id, name: file.name, size: file.bytes.length }];
  });
}

function toRefs(delivery: Delivery, ids: readonly string[]): AttachmentRef[] {
  return toAttachments(delivery.place, toParts(delivery, ids));
}

function checkFiles(files: readonly OutboundFile[]): void {
  if (files.length === 0 || files.length > MAX_FILES) {
    throw new SinkError("rejected", `${files.length} files; one to ${MAX_FILES} fit in a message.`);
  }
  const wrong = files.find(({ bytes }) => bytes.length === 0 || bytes.length > MAX_FILE_BYTES);
  if (wrong === undefined) return;
  const why = wrong.bytes.length === 0 ? "is empty" : "is over 50 MiB";
  throw new SinkError("rejected", `A file ${why}`, { quote: `: ${wrong.name}` });
}
