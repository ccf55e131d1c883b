import { toPictureId } from "../port/ids.ts";
import type { Button, Draft, SinkLimits } from "../port/sink.ts";
import type { Closing } from "../reply/drafts.ts";
import { healMarkdown } from "../text/heal.ts";
import { neutralize } from "../text/neutralize.ts";
import { quoteName } from "../text/quote-name.ts";
import { truncate } from "../text/truncate.ts";
import { isDone, type PictureTurn } from "../turn/record.ts";
import { toNextSize } from "./request.ts";

/** Maximum length of the model's own text about its image, in characters. */
const MAX_TEXT_CHARS = 1_000;
/** Discord allows 1,024 characters and Slack 2,000. */
const MAX_ALT_CHARS = 1_000;
const MAX_NAME_CHARS = 60;

/** Facts for an image's caption. */
interface Drawn {
  text: string;
  tokens: number | undefined;
  /** True if the second gateway created the image, because the first was down. */
  isElsewhere?: boolean;
  /** The requested ratio or size that the image does not have. */
  unmet?: readonly string[] | undefined;
}

export function toCaption(turn: PictureTurn, number: number, drawn: Drawn, limits: SinkLimits): Draft {
  const line = toLine(turn, number, drawn);
  const words = healMarkdown(truncate(neutralize(drawn.text).trim(), MAX_TEXT_CHARS));
  const whole = [words, line].filter(Boolean).join("\n\n");
  const markdown = limits.lengthOf(whole) <= limits.maxLength ? whole : line;
  return { markdown, buttons: toButtons(turn, number), streaming: false };
}

function toLine(turn: PictureTurn, number: number, { tokens, isElsewhere = false, unmet = [] }: Drawn): string {
  const { prompt, change, ratio, size, model, author, parts } = turn;
  const place = parts.length === 1 ? undefined : `${number} of ${parts.length}`;
  const kind = change === "vary" ? "variation" : change === "upscale" ? "enlarged" : undefined;
  // Some gateways report 0 tokens when they don't count tokens.
  const cost = tokens === undefined || tokens === 0 ? undefined : `${tokens.toLocaleString("en-US")} tokens`;
  const by = isElsewhere ? `${quoteName(model)} of the second AI service` : quoteName(model);
  const met = [ratio, size].filter((value) => value === undefined || !unmet.includes(value));
  const lack = unmet.length === 0 ? undefined : `without ${unmet.join(" and ")}, which this model does not support`;
  const facts = [quoteName(prompt), place, kind, ...met, by, lack, cost, `for ${quoteName(author.name)}`];
  return facts.filter((fact) => fact !== undefined).join(" · ");
}

function toButtons({ id, size }: PictureTurn, number: number): Button[] {
  const turnId = toPictureId(id, number);
  const next = toNextSize(size);
  return [
    { action: "again", turnId, label: "Again" },
    { action: "vary", turnId, label: "Vary" },
    { action: "edit", turnId, label: "Edit…" },
    ...(next === undefined ? [] : [{ action: "upscale" as const, turnId, label: `Upscale to ${next}` }]),
    { action: "delete", turnId, label: "Delete" },
  ];
}

/** Describes a turn's progress. `notice` says what the turn waits for. */
export function toProgress({ prompt, parts }: PictureTurn, notice: string): string {
  const ended = parts.filter(({ state }) => state !== "pending").length;
  const count = parts.length === 1 ? "" : ` ${ended} of ${parts.length} done`;
  const note = notice === "" ? "" : `\n\n_${notice}_`;
  return `Creating ${quoteName(prompt)} …${count}${note}`;
}

export function toWaiting({ id }: Pick<PictureTurn, "id">): Draft {
  const stop: Button = { action: "stop", turnId: toPictureId(id, 0), label: "Stop" };
  return { markdown: "Waiting for other images to finish.", buttons: [stop], streaming: false };
}

/** Returns the last message of a turn; empty if all images are visible. */
export function toSummary(turn: PictureTurn): Closing {
  const failures = turn.parts.flatMap((part, index) =>
    part.state === "failed" ? [{ ...part, number: index + 1 }] : [],
  );
  const [first] = failures;
  if (first === undefined) return { note: "", buttons: [] };
  const buttons = failures.some(({ canRetry }) => canRetry) ? [toRetry(turn)] : [];
  return { note: `${toHeadline(turn, failures.length)}\n\n${toReasons(failures)}`, buttons };
}

/** Replaces a text that the platform refused. */
export function toRefused(turn: PictureTurn): Closing {
  return { note: "_A filter here blocked what I wrote about these images._", buttons: [toRetry(turn)] };
}

function toRetry({ id }: PictureTurn): Button {
  return { action: "retry", turnId: toPictureId(id, 0), label: "Retry" };
}

function toHeadline({ prompt, parts }: PictureTurn, failed: number): string {
  // The failure's reason says whether the image was not created or could not be shown.
  if (parts.length === 1) return `No image for ${quoteName(prompt)}.`;
  return `${failed} of ${parts.length} images for ${quoteName(prompt)} ${failed === 1 ? "is" : "are"} missing.`;
}

function toReasons(failures: ReadonlyArray<{ reason: string; number: number }>): string {
  const reasons = new Set(failures.map(({ reason }) => reason));
  if (reasons.size === 1) return [...reasons].join("");
  return failures.map(({ reason, number }) => `- Image ${number}: ${reason}`).join("\n");
}

/** Derives a file name from the prompt, for example "a-red-fox-2.png". */
export function toFileName({ prompt, parts }: PictureTurn, number: number, mimeType: string): string {
  const words =
    prompt
      .normalize("NFC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const stem = truncate(words.join("-"), MAX_NAME_CHARS, "").replace(/-$/, "") || "picture";
  const extension = mimeType === "image/jpeg" ? "jpg" : mimeType.replace(/^image\//, "");
  return `${stem}${parts.length > 1 ? `-${number}` : ""}.${extension}`;
}

export function toAltText({ prompt }: Pick<PictureTurn, "prompt">): string {
  return truncate(neutralize(prompt).replace(/\s+/g, " ").trim(), MAX_ALT_CHARS);
}

/** Describes images for the history. The text is a user message, because the images are attached to it. */
export function toHistoryText({ prompt, parts, author }: PictureTurn): string {
  const count = parts.filter(isDone).length;
  const images = count === 1 ? "An image was" : `${count} images were`;
  return `(${images} created and shown here for ${JSON.stringify(author.name)}, from the prompt: ${JSON.stringify(prompt)})`;
}
