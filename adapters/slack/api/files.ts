import { isIP } from "node:net";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { createGuardedFetch } from "../../../src/media/fetch.ts";
import { FileProblem } from "../../../src/media/file-problem.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import { PLATFORM } from "../ids.ts";
import type { SlackApi } from "./client.ts";
import { ApiError, isUncertain } from "./error.ts";
import { type Body, readText } from "./wire.ts";
import type { Workspace } from "./workspaces.ts";

const MAX_READ_BYTES = 100 * 1024 * 1024;
const MAX_REMEMBERED = 2_000;
const GONE_CODES = new Set(["file_not_found", "file_deleted", "file_is_deleted"]);
const INSTALL = "add it in the app's settings and install the app again";
/** The modes of files that Slack lists without storing their bytes. */
const EMPTY_MODES = new Set(["tombstone", "hidden_by_limit"]);
const COMMERCIAL = "slack.com";

export interface Files {
  /** Rejects with a sentence for people if the file is gone or the bot cannot read it. */
  open(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

export interface FilesDeps {
  api: SlackApi;
  apiUrl: string | undefined;
}

interface Link {
  url: string;
  /** True if the file itself is a web page. For other files, a web page means that Slack did not send the file. */
  isPage: boolean;
}

export function createFiles({ api, apiUrl }: FilesDeps): Files {
  const { files: hosts, origins } = createSlackHosts(apiUrl);
  // Other hosts must not get the bot's token.
  const fetch = createGuardedFetch({ owner: "Slack", hosts, origins });
  const links = new BoundedMap<string, Link>(MAX_REMEMBERED);

  async function findLink({ id }: AttachmentRef, signal: AbortSignal): Promise<Link> {
    const known = links.get(id);
    if (known !== undefined) return known;
    const place = readAttachmentId(id);
    if (place === undefined) throw new FileProblem("gone", "is not a Slack file");
    const { file } = await api.call(place.teamId, "files.info", { file: place.fileId }, signal);
    const { url_private_download, url_private, mimetype, is_external } = file as Body;
    const url = url_private_download ?? url_private;
    if (typeof url !== "string" || is_external === true) {
      throw new FileProblem("foreign", "is stored outside Slack, which only has a link to it");
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

function toProblem(error: unknown): FileProblem {
  if (error instanceof FileProblem) {
    const isScope = error.kind === "page" || error.kind === "redirect";
    if (!isScope) return error;
    return new FileProblem(error.kind, `${error.message}. If the scope files:read is missing, ${INSTALL}`);
  }
  if (error instanceof ApiError) {
    if (GONE_CODES.has(error.code)) return new FileProblem("gone", "no longer exists");
    if (error.code === "missing_scope") {
      const scope = error.needed ?? "files:read";
      return new FileProblem("forbidden", `is not accessible to the bot: the scope ${scope} is missing; ${INSTALL}`);
    }
    if (!isUncertain(error) && error.retryAfterMs === undefined) {
      return new FileProblem("forbidden", `is not accessible to the bot (${error.code})`);
    }
  }
  return new FileProblem("unavailable", "could not be downloaded from Slack", { cause: error });
}

export interface AttachmentPlace {
  teamId: string;
  fileId: string;
}

/** The files in a message. A file from another organisation has no name and no size here; `files.info` returns both. */
export function toAttachments({ teamId }: Pick<Workspace, "teamId">, files: readonly Body[]): AttachmentRef[] {
  return files.flatMap((file) => {
    const fileId = readText(file["id"]);
    if (fileId === undefined || EMPTY_MODES.has(readText(file["mode"]) ?? "")) return [];
    const name = readText(file["name"]) ?? readText(file["title"]) ?? "file";
    const size = file["size"];
    const sizeBytes = typeof size === "number" ? size : 0;
    return [{ platform: PLATFORM, id: `${teamId}:${fileId}`, name, sizeBytes }];
  });
}

/** Undefined if the attachment belongs to another platform. */
export function readAttachmentId(id: string): AttachmentPlace | undefined {
  const [, teamId, fileId] = /^(\w+):(\w+)$/.exec(id) ?? [];
  return teamId === undefined || fileId === undefined ? undefined : { teamId, fileId };
}

/** Slack's own hosts. The bot sends no file, reply or token to any other host, even if Slack returns its URL. */
export interface SlackHosts {
  /** The origin of `SLACK_API_URL`. It can use http, for a server that imitates Slack. */
  origins: readonly string[];
  /** Hosts to download from and upload to. An entry is a name, or `*.` and a name for all its subdomains. */
  files: readonly string[];
  /** True for a URL that accepts replies to a command or a button. */
  isHook(address: string): boolean;
  isUpload(address: string): boolean;
}

/**
 * Slack's hosts, and the subdomains of the Web API's host: GovSlack has its API at slack-gov.com, with its hooks and
 * files on subdomains. https://api.slack-gov.com/gov-slack/about
 */
export function createSlackHosts(apiUrl: string | undefined): SlackHosts {
  const api = apiUrl === undefined ? undefined : new URL(apiUrl);
  const origins = api === undefined ? [] : [api.origin];
  const name = api?.hostname.replace(/^www\./, "") ?? COMMERCIAL;
  const isName = isIP(name.replace(/^\[|\]$/g, "")) === 0 && name.includes(".");
  const domains = [...new Set([COMMERCIAL, ...(isName ? [name] : [])])];
  const files = [...domains, "slack-files.com"].map((domain) => `*.${domain}`);

  return {
    origins,
    files,
    isHook(address) {
      const url = URL.parse(address);
      if (url === null) return false;
      return origins.includes(url.origin) || domains.some((domain) => url.origin === `https://hooks.${domain}`);
    },
    isUpload(address) {
      const url = URL.parse(address);
      if (url === null) return false;
      const isBelow = files.some((host) => `.${url.hostname}`.endsWith(host.slice(1)));
      return origins.includes(url.origin) || (url.protocol === "https:" && isBelow);
    },
  };
}
