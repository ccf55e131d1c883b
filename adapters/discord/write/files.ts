import { toShownSize } from "../../../src/media/file-problem.ts";
import { toUploadName } from "../../../src/media/upload-name.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { OutboundFile } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import type { ApiCall } from "../api/client.ts";

const MAX_FILES = 10;
/** Largest file without Nitro or boosts. https://docs.discord.com/developers/reference#uploading-files */
const USUAL_FILE_BYTES = 10 * 1024 * 1024;
/**
 * Largest request on any server, minus space for the fields next to the files.
 * https://docs.discord.com/developers/resources/message#create-message
 */
const MAX_REQUEST_BYTES = 24 * 1024 * 1024;
const DESCRIPTION_CHARS = 1_024;
/** Discord covers a file whose name has this prefix until someone clicks it. */
const COVER = "SPOILER_";

export function attach(body: object, files: readonly OutboundFile[]): Pick<ApiCall, "files"> & { body: object } {
  if (files.length === 0) return { body };
  const attachments = files.map((file, index) => ({
    id: String(index),
    filename: toName(file),
    ...(file.altText !== undefined && { description: truncate(file.altText, DESCRIPTION_CHARS) }),
  }));
  const named = files.map((file) => ({ ...file, name: toName(file) }));
  return { body: { ...body, attachments }, files: named };
}

/** Returns the largest file for a place, in bytes. `named`: Discord's limit for the place, if Discord reports one. */
export function toMaxFileBytes(named: number | undefined): number {
  return Math.min(named ?? USUAL_FILE_BYTES, MAX_REQUEST_BYTES);
}

/** Throws a `SinkError` if Discord would refuse the files. */
export function checkFiles(files: readonly OutboundFile[], maxFileBytes: number): void {
  if (files.length > MAX_FILES)
    throw new SinkError("rejected", `A message cannot hold ${files.length} files; at most ${MAX_FILES} are allowed.`);
  const large = files.find(({ bytes }) => bytes.length > maxFileBytes);
  if (large !== undefined) {
    throw new SinkError("rejected", `A file is over ${toShownSize(maxFileBytes)}`, { quote: `: ${large.name}` });
  }
  const sum = files.reduce((total, { bytes }) => total + bytes.length, 0);
  if (sum > MAX_REQUEST_BYTES) throw new SinkError("rejected", "The files of one message add up to more than 24 MiB.");
}

function toName({ name, isSpoiler = false }: OutboundFile): string {
  const plain = toUploadName(name, '"');
  return isSpoiler && !plain.startsWith(COVER) ? COVER + plain : plain;
}
