import type { Json, StoredFile } from "./world.ts";

/** Formats a file for people who can see it. Its links need the bot's token. */
export function fileToWire(file: StoredFile, origin: string): Json {
  const { id, name, title, mimeType, bytes, owner, altText } = file;
  const path = `${owner.workspace.id}-${id}/${encodeURIComponent(name)}`;
  return {
    id,
    name,
    title,
    mimetype: mimeType,
    filetype: name.split(".").at(-1) ?? "",
    user: owner.id,
    ...(altText !== "" && { alt_txt: altText }),
    size: bytes.length,
    mode: "hosted",
    is_external: false,
    is_public: file.shares.some(({ channel }) => channel.kind === "public"),
    url_private: `${origin}/files-pri/${path}`,
    url_private_download: `${origin}/files-pri/${path}?download=1`,
    permalink: `${origin}/files/${owner.id}/${id}/${encodeURIComponent(name)}`,
    shares: sharesToWire(file),
  };
}

/** Formats a file in a channel that organisations share. The app must look it up with `files.info`. */
export function fileToStub({ id }: StoredFile): Json {
  return { id, mode: "file_access", file_access: "check_file_info" };
}

function sharesToWire({ shares }: StoredFile): Json {
  const found: Record<"public" | "private", Record<string, Json[]>> = { public: {}, private: {} };
  for (const { channel, ts, threadTs } of shares) {
    const side = found[channel.kind === "public" ? "public" : "private"];
    side[channel.id] = [
      ...(side[channel.id] ?? []),
      { ts, ...(threadTs === undefined ? {} : { thread_ts: threadTs }) },
    ];
  }
  return Object.fromEntries(Object.entries(found).filter(([, channels]) => Object.keys(channels).length > 0));
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  md: "text/markdown",
  txt: "text/plain",
  pdf: "application/pdf",
  json: "application/json",
};

/** Slack trusts the extension, not the bytes. */
export function mimeTypeOf(name: string): string {
  return MIME_TYPES[name.split(".").at(-1)?.toLowerCase() ?? ""] ?? "application/octet-stream";
}
