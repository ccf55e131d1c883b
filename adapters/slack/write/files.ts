import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { createGuardedFetch } from "../../../src/media/fetch.ts";
import { FileProblem } from "../../../src/media/file-problem.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import { readAttachmentId } from "../api/attachments.ts";
import type { SlackApi } from "../api/client.ts";
import { isUncertain, SlackApiError } from "../api/error.ts";
import { createSlackHosts } from "../api/hosts.ts";
import type { Body } from "../api/wire.ts";

/** No file is read beyond this. */
const MAX_READ_BYTES = 100 * 1024 * 1024;
const MAX_REMEMBERED = 2_000;
const GONE_CODES = new Set(["file_not_found", "file_deleted", "file_is_deleted"]);

/** The way back to the bytes of a file. */
export interface Files {
  /** Rejects in plain words when it is gone or may not be read. */
  open(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

export interface FilesDeps {
  api: SlackApi;
  apiUrl: string | undefined;
}

interface Link {
  url: string;
  /** It is a web page itself, and not one that Slack shows instead of a file. */
  isPage: boolean;
}

export function createFiles({ api, apiUrl }: FilesDeps): Files {
  const { files: hosts, origins } = createSlackHosts(apiUrl);
  // Links to other hosts are never followed with the bot's token.
  const fetch = createGuardedFetch({ owner: "Slack", hosts, origins });
  const links = new BoundedMap<string, Link>(MAX_REMEMBERED);

  /** Fetched anew by a later attempt, because nothing else tells that a file was shared from another organisation. */
  async function findLink({ id }: AttachmentRef, signal: AbortSignal): Promise<Link> {
    const known = links.get(id);
    if (known !== undefined) return known;
    const place = readAttachmentId(id);
    if (place === undefined) throw new FileProblem("gone", "is not a file of Slack's");
    const { file } = await api.call(place.teamId, "files.info", { file: place.fileId }, signal);
    const { url_private_download, url_private, mimetype, is_external } = file as Body;
    const url = url_private_download ?? url_private;
    if (typeof url !== "string" || is_external === true) {
      throw new FileProblem("foreign", "is kept outside Slack, which only has a link to it");
    }
    const link = { url, isPage: String(mimetype).includes("html") };
    links.set(id, link);
    return link;
  }

  return {
    async open(ref, signal) {
      try {
        const { url, isPage } = await findLink(ref, signal);
        const token = await api.tokenOf(readAttachmentId(ref.id)?.teamId ?? "", signal);
        const headers = { authorization: `Bearer ${token}` };
        return await fetch.open(url, { headers, maxBytes: MAX_READ_BYTES, mayBePage: isPage }, signal);
      } catch (error) {
        signal.throwIfAborted();
        const problem = toProblem(error);
        if (problem.kind === "gone") links.delete(ref.id);
        throw toOpenError(ref, problem);
      }
    },
  };
}

function toOpenError({ name }: AttachmentRef, problem: FileProblem): Error {
  return new Error(`The file ${JSON.stringify(name)} cannot be opened: it ${problem.message}.`, { cause: problem });
}

const INSTALL = "add it in the app's settings and install the app again";

function toProblem(error: unknown): FileProblem {
  if (error instanceof FileProblem) {
    const isScope = error.kind === "page" || error.kind === "redirect";
    if (!isScope) return error;
    return new FileProblem(error.kind, `${error.message}. If the scope files:read is missing, ${INSTALL}`);
  }
  if (error instanceof SlackApiError) {
    if (GONE_CODES.has(error.code)) return new FileProblem("gone", "is not there any more");
    if (error.code === "missing_scope") {
      const scope = error.needed ?? "files:read";
      return new FileProblem("forbidden", `may not be read by the bot: the scope ${scope} is missing; ${INSTALL}`);
    }
    if (!isUncertain(error) && error.retryAfterMs === undefined) {
      return new FileProblem("forbidden", `may not be read by the bot (${error.code})`);
    }
  }
  return new FileProblem("unavailable", "could not be fetched from Slack at the moment", { cause: error });
}
