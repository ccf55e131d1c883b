import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { toUploadName } from "../../../src/media/upload-name.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { OutboundFile } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, SlackApiError } from "../api/error.ts";
import { createSlackHosts } from "../api/hosts.ts";
import type { Body } from "../api/wire.ts";

const MAX_ALT_CHARS = 1_000;
/** Pauses between the looks at a file that Slack still works on. After the last one it is given up. */
const POLL_PAUSES_MS = [50, 150, 300, 600, 1_000, 1_500, 2_000, 2_500, 3_000] as const;
/** Refusals to tell of a file, which no waiting mends; it may be shown all the same. */
const UNTOLD_CODES = new Set(["unknown_method", "missing_scope", "not_allowed_token_type", "no_permission"]);

/** A file whose bytes are with Slack. */
export interface UploadedFile {
  id: string;
  file: OutboundFile;
}

/** `untold`: Slack lets nobody look at it. `late`: it was not as wanted in all that time. */
export type PollResult<T> = { found: T } | "untold" | "late";

/** The bytes of files, on their way to Slack and there. */
export interface FileStore {
  readonly pollPausesMs: readonly number[];
  /** Sends the bytes of a file under a name; nobody sees it yet. */
  store(teamId: string, file: OutboundFile, name: string, signal: AbortSignal): Promise<UploadedFile>;
  /** Finishes uploads, which are shown where `share` says, or nowhere. Each file can be finished once. */
  complete(teamId: string, stored: readonly UploadedFile[], share: object, signal: AbortSignal): Promise<void>;
  /** Looks at a file until it is as wanted. */
  waitFor<T>(
    teamId: string,
    id: string,
    find: (file: Body) => T | undefined,
    signal: AbortSignal,
  ): Promise<PollResult<T>>;
  /** Deletes files that nobody sees. Best effort. */
  drop(teamId: string, stored: readonly UploadedFile[], signal: AbortSignal): Promise<void>;
}

export interface FileStoreDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  /** Pauses between the looks at a file that Slack still works on; sensible ones when undefined. */
  pollPausesMs?: readonly number[] | undefined;
}

export function createFileStore({ api, apiUrl, pollPausesMs = POLL_PAUSES_MS }: FileStoreDeps): FileStore {
  const hosts = createSlackHosts(apiUrl);

  return {
    pollPausesMs,
    async store(teamId, file, name, signal) {
      const announced = await api.call(
        teamId,
        "files.getUploadURLExternal",
        {
          filename: toFileName(name),
          length: file.bytes.length,
          // Slack's own client calls it `alt_text`, which Slack ignores.
          // https://docs.slack.dev/reference/methods/files.getUploadURLExternal
          ...(file.altText !== undefined && { alt_txt: truncate(file.altText, MAX_ALT_CHARS) }),
        },
        signal,
      );
      const address = String(announced["upload_url"]);
      // The address alone permits the upload: no token goes there.
      if (!hosts.isUpload(address)) {
        throw new SinkError("rejected", "Slack named a place for the file that is not one of its own.");
      }
      await send(address, file.bytes, signal);
      return { id: String(announced["file_id"]), file };
    },
    async complete(teamId, stored, share, signal) {
      const files = stored.map(({ id, file }) => ({ id, title: file.name }));
      await api.call(teamId, "files.completeUploadExternal", { files, ...share }, signal);
    },
    async waitFor(teamId, id, find, signal) {
      for (const pauseMs of pollPausesMs) {
        try {
          const { file } = await api.call(teamId, "files.info", { file: id }, signal);
          const found = find(file as Body);
          if (found !== undefined) return { found };
        } catch (error) {
          if (UNTOLD_CODES.has(codeOf(error))) return "untold";
          // Slack may not know a file yet that it still works on.
          if (codeOf(error) !== "file_not_found") throw error;
        }
        await sleep(pauseMs, undefined, { signal });
      }
      return "late";
    },
    async drop(teamId, stored, signal) {
      for (const { id } of stored) await api.call(teamId, "files.delete", { file: id }, signal).catch(() => {});
      signal.throwIfAborted();
    },
  };
}

/** The name as Slack is told it. */
export function toFileName(name: string): string {
  return toUploadName(name, `"<>`);
}

async function send(url: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/octet-stream" };
  const method = "upload";
  try {
    const { statusCode: status, body } = await request(url, { method: "POST", headers, body: bytes, signal });
    await body.dump();
    if (status === 200) return;
    throw new SlackApiError(method, `Slack answered the ${method} of a file with ${status}.`, { code: "", status });
  } catch (error) {
    if (signal.aborted || error instanceof SlackApiError) throw error;
    throw new SlackApiError(method, `Slack did not take the ${method} of a file.`, { code: "", status: 0 });
  }
}
