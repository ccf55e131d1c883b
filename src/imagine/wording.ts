import { toPictureId } from "../port/ids.ts";
import type { Button, Draft, SinkLimits } from "../port/sink.ts";
import { healMarkdown } from "../text/heal.ts";
import { neutralize } from "../text/neutralize.ts";
import { quoteName } from "../text/quote-name.ts";
import { truncate } from "../text/truncate.ts";
import type { PictureJob, PicturePart } from "./picture-job.ts";
import { toNextSize } from "./request.ts";

/** Bound of the model's words about its picture. */
const MAX_TEXT_CHARS = 1_000;
/** Discord allows 1,024, Slack 2,000. */
const MAX_ALT_CHARS = 1_000;
const MAX_NAME_CHARS = 60;

/** The facts that a drawn picture's caption tells. */
interface Drawn {
  text: string;
  tokens: number | undefined;
  /** The second gateway drew it, because the first was down. */
  isElsewhere?: boolean;
  /** The requested ratio and size that the picture does not have. */
  unmet?: readonly string[] | undefined;
}

/** The caption under a picture, with the buttons that belong to it. */
export function toCaption(job: PictureJob, number: number, drawn: Drawn, limits: SinkLimits): Draft {
  const line = toLine(job, number, drawn);
  const words = healMarkdown(truncate(neutralize(drawn.text).trim(), MAX_TEXT_CHARS));
  const whole = [words, line].filter(Boolean).join("\n\n");
  const markdown = limits.lengthOf(whole) <= limits.maxLength ? whole : line;
  return { markdown, buttons: toButtons(job, number), streaming: false };
}

function toLine(job: PictureJob, number: number, { tokens, isElsewhere = false, unmet = [] }: Drawn): string {
  const { prompt, change, ratio, size, model, author, parts } = job;
  const place = parts.length === 1 ? undefined : `${number} of ${parts.length}`;
  const kind = change === "vary" ? "variation" : change === "upscale" ? "enlarged" : undefined;
  // Gateways that do not count say 0.
  const cost = tokens === undefined || tokens === 0 ? undefined : `${tokens.toLocaleString("en-US")} tokens`;
  const by = isElsewhere ? `${quoteName(model)} of the second AI service` : quoteName(model);
  const met = [ratio, size].filter((value) => value === undefined || !unmet.includes(value));
  const lack = unmet.length === 0 ? undefined : `without ${unmet.join(" and ")}, which this model does not support`;
  const facts = [quoteName(prompt), place, kind, ...met, by, lack, cost, `for ${quoteName(author.name)}`];
  return facts.filter((fact) => fact !== undefined).join(" · ");
}

function toButtons({ id, size }: PictureJob, number: number): Button[] {
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

/** Says how far a job has come. `notice` says what it waits for. */
export function toProgress({ id, prompt, parts }: PictureJob, notice: string): Draft {
  const ended = parts.filter(({ state }) => state !== "pending").length;
  const count = parts.length === 1 ? "" : ` ${ended} of ${parts.length} done`;
  const note = notice === "" ? "" : `\n\n_${notice}_`;
  return { markdown: `Drawing ${quoteName(prompt)} …${count}${note}`, buttons: [toStop(id)], streaming: false };
}

/** Ends a job, whether it waits or is at work. */
export function toStop(jobId: string): Button {
  return { action: "stop", turnId: toPictureId(jobId, 0), label: "Stop" };
}

/** The last words on a job that is over; undefined when every picture is there. */
export function toSummary(job: PictureJob): Draft | undefined {
  const failures = job.parts.flatMap((part, index) =>
    part.state === "failed" ? [{ ...part, number: index + 1 }] : [],
  );
  const [first] = failures;
  if (first === undefined) return undefined;
  const retry: Button = { action: "retry", turnId: toPictureId(job.id, 0), label: "Retry" };
  const buttons = failures.some(({ canRetry }) => canRetry) ? [retry] : [];
  return { markdown: `${toHeadline(job, failures.length)}\n\n${toReasons(failures)}`, buttons, streaming: false };
}

function toHeadline({ prompt, parts }: PictureJob, failed: number): string {
  // The reason says if it was not drawn, or drawn and could not be shown.
  if (parts.length === 1) return `No picture of ${quoteName(prompt)}.`;
  return `${failed} of ${parts.length} pictures of ${quoteName(prompt)} ${failed === 1 ? "is" : "are"} missing.`;
}

function toReasons(failures: ReadonlyArray<{ reason: string; number: number }>): string {
  const reasons = new Set(failures.map(({ reason }) => reason));
  if (reasons.size === 1) return [...reasons].join("");
  return failures.map(({ reason, number }) => `- Picture ${number}: ${reason}`).join("\n");
}

/** A file's name that says what is in it: "a-red-fox-2.png". */
export function toFileName({ prompt, parts }: PictureJob, number: number, mimeType: string): string {
  const words =
    prompt
      .normalize("NFC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const stem = truncate(words.join("-"), MAX_NAME_CHARS, "").replace(/-$/, "") || "picture";
  const extension = mimeType === "image/jpeg" ? "jpg" : mimeType.replace(/^image\//, "");
  return `${stem}${parts.length > 1 ? `-${number}` : ""}.${extension}`;
}

export function toAltText({ prompt }: Pick<PictureJob, "prompt">): string {
  return truncate(neutralize(prompt).replace(/\s+/g, " ").trim(), MAX_ALT_CHARS);
}

/** The history's text on pictures, in the place of a person's words: their bytes come with it as attachments. */
export function toHistoryText({ prompt, parts, author }: PictureJob): string {
  const count = parts.filter(isDone).length;
  const pictures = count === 1 ? "A picture was" : `${count} pictures were`;
  return `(${pictures} drawn and shown here for ${JSON.stringify(author.name)}, from the words: ${JSON.stringify(prompt)})`;
}

export function isDone(part: PicturePart): part is Extract<PicturePart, { state: "done" }> {
  return part.state === "done";
}
