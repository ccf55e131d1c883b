import type { RawFile } from "discord.js";
import { toShownSize } from "../../../src/media/file-problem.ts";
import { toUploadName } from "../../../src/media/upload-name.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { OutboundFile } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";

const MAX_FILES = 10;
/** Largest file without Nitro or boosts. https://docs.discord.com/developers/reference#uploading-files */
const USUAL_FILE_BYTES = 10 * 1024 * 1024;
/** Largest request everywhere, less room for what frames the files. https://docs.discord.com/developers/resources/message#create-message */
const MAX_REQUEST_BYTES = 24 * 1024 * 1024;
const DESCRIPTION_CHARS = 1_024;
/** A file whose name begins so is covered until somebody wants to see it. */
const COVER = "SPOILER_";

/** The parts of a call that carry files beside a body. */
export function attach(body: object, files: readonly OutboundFile[]): { body: object; files?: RawFile[] } {
  if (files.length === 0) return { body };
  const attachments = files.map((file, index) => ({
    id: String(index),
    filename: toName(file),
    ...(file.altText !== undefined && { description: truncate(file.altText, DESCRIPTION_CHARS) }),
  }));
  const raw = files.map((file, index) => {
    const { bytes, contentType } = file;
    return { key: `files[${index}]`, name: toName(file), data: Buffer.from(bytes), contentType };
  });
  return { body: { ...body, attachments }, files: raw };
}

/** The largest file for a place, given the limit that Discord names for it. Undefined: Discord names none. */
export function toMaxFileBytes(named: number | undefined): number {
  return Math.min(named ?? USUAL_FILE_BYTES, MAX_REQUEST_BYTES);
}

/** Throws a `SinkError` for files that Discord would refuse. */
export function checkFiles(files: readonly OutboundFile[], maxFileBytes: number): void {
  if (files.length > MAX_FILES)
    throw new SinkError("rejected", `${files.length} files; ${MAX_FILES} fit in a message.`);
  const large = files.find(({ bytes }) => bytes.length > maxFileBytes);
  if (large !== undefined) {
    throw new SinkError("rejected", `A file is over ${toShownSize(maxFileBytes)}`, { quote: `: ${large.name}` });
  }
  const sum = files.reduce((total, { bytes }) => total + bytes.length, 0);
  if (sum > MAX_REQUEST_BYTES) throw new SinkError("rejected", "The files of one message are over 24 MiB together.");
}

function toName({ name, isSpoiler = false }: OutboundFile): string {
  const plain = toUploadName(name, '"');
  return isSpoiler && !plain.startsWith(COVER) ? COVER + plain : plain;
}
