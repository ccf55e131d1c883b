import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "./clock.ts";
import type { Attachment } from "./world.ts";

const LINK_MS = 24 * 60 * 60 * 1000;
const GONE = "This content is no longer available.";

/** Discord derives the type from the name alone, so the type can contradict the bytes. */
const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  txt: "text/plain; charset=utf-8",
  md: "text/markdown; charset=utf-8",
  json: "application/json; charset=utf-8",
  pdf: "application/pdf",
  mp4: "video/mp4",
  ogg: "audio/ogg",
};

export interface NewFile {
  id: string;
  channelId: string;
  name: string;
  bytes: Uint8Array;
  description?: string | undefined;
  /**
   * True for a file from a command or a form. Discord never renews its link, so the file is gone when the link expires.
   */
  isEphemeral?: boolean;
}

/** The CDN. Its links are signed and expire. */
export interface Files {
  store(file: NewFile): Attachment;
  /** Returns a link that is valid for a day. */
  linkTo(attachment: Attachment): string;
  /** Returns a new link to the same file, or the old link if it cannot be renewed. */
  refresh(url: string): string;
  serve(request: IncomingMessage, response: ServerResponse, url: URL): void;
}

export function createFiles(origin: () => string, clock: Clock): Files {
  const key = randomBytes(32);
  const stored = new Map<string, Attachment>();

  function sign(path: string, issued: string, expires: string): string {
    return createHmac("sha256", key).update(`${path} ${issued} ${expires}`).digest("hex");
  }

  function link(path: string): string {
    const issued = Math.floor(clock.now() / 1000).toString(16);
    const expires = Math.floor((clock.now() + LINK_MS) / 1000).toString(16);
    return `${origin()}${path}?ex=${expires}&is=${issued}&hm=${sign(path, issued, expires)}&`;
  }

  function isValid(url: URL): boolean {
    const [expires, issued, mark] = ["ex", "is", "hm"].map((name) => url.searchParams.get(name) ?? "");
    const expected = Buffer.from(sign(url.pathname, issued ?? "", expires ?? ""));
    const given = Buffer.from(mark ?? "");
    const isSigned = given.length === expected.length && timingSafeEqual(given, expected);
    return isSigned && Number.parseInt(expires ?? "", 16) * 1000 > clock.now();
  }

  return {
    store({ id, channelId, name, bytes, description, isEphemeral = false }) {
      const folder = isEphemeral ? "ephemeral-attachments" : "attachments";
      // Discord keeps only these characters of a name.
      const safeName = name.replaceAll(/[^\w.-]+/g, "_");
      const path = `/${folder}/${channelId}/${id}/${safeName}`;
      const contentType = TYPES[/\.(\w+)$/.exec(safeName)?.[1]?.toLowerCase() ?? ""];
      const attachment: Attachment = {
        id,
        name: safeName,
        title: safeName === name ? undefined : name.replace(/\.\w+$/, ""),
        bytes,
        contentType,
        description,
        path,
        isEphemeral,
        ...sizeOf(bytes),
      };
      stored.set(path, attachment);
      return attachment;
    },
    linkTo: ({ path }) => link(path),
    refresh(url) {
      const path = URL.canParse(url) ? new URL(url).pathname : "";
      return stored.get(path)?.isEphemeral === false ? link(path) : url;
    },
    serve(request, response, url) {
      const file = stored.get(url.pathname);
      if (file === undefined || !isValid(url)) {
        response.writeHead(404, { "Content-Type": "text/plain;charset=UTF-8" });
        response.end(GONE);
        return;
      }
      sendBytes(request, response, file);
    },
  };
}

function sendBytes(request: IncomingMessage, response: ServerResponse, { bytes, contentType }: Attachment): void {
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const start = Number(from ?? 0);
  const end = Math.min(to ? Number(to) + 1 : bytes.length, bytes.length);
  const part = bytes.subarray(start, end);
  response.writeHead(from === undefined ? 200 : 206, {
    "Content-Type": contentType ?? "application/octet-stream",
    "Content-Length": part.length,
    "Accept-Ranges": "bytes",
    ...(from === undefined ? {} : { "Content-Range": `bytes ${start}-${end - 1}/${bytes.length}` }),
  });
  response.end(request.method === "HEAD" ? undefined : part);
}

/** Returns the width and height of a PNG; {} for a file that Discord could not decode. */
function sizeOf(bytes: Uint8Array): { width?: number; height?: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isPng = bytes.length >= 24 && view.getUint32(0) === 0x89_50_4e_47;
  return isPng ? { width: view.getUint32(16), height: view.getUint32(20) } : {};
}
