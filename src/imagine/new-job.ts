import { findModel, nearModels } from "../models/model-list.ts";
import type { ListModels } from "../port/catalogue.ts";
import type { ActionEvent, AttachmentRef, CommandEvent } from "../port/events.ts";
import { readPictureId, toConversationOf, toTurnId } from "../port/ids.ts";
import { quoteName } from "../text/quote-name.ts";
import { maySee, NOT_HERE } from "../turn/rights.ts";
import { attachmentOf, type PictureJob, type PicturePart } from "./picture-job.ts";
import { describeProblems, describeTooMany, type ImagineRequest, readImagineRequest, toNextSize } from "./request.ts";
import type { RunningJobs } from "./running-jobs.ts";

/** Answers where a picture is not kept any more, or cannot be opened again. */
export const TOO_OLD = "This picture is too old: how it was asked for is not kept any more. Please ask once more.";
const NOT_OPEN = "This picture cannot be opened again here, so nothing can be drawn from it.";
const NOT_READY = "This picture is not finished yet. Press the button again in a moment.";
const LARGEST = "This picture has the largest size already.";

export interface NewJobDeps {
  running: Pick<RunningJobs, "findSettled">;
  listModels: ListModels;
  /** The usual one. */
  model: string;
  maxReferences: number;
}

/** A job that nothing was done for yet, or the reason why there is none. */
export type NewJob = { job: PictureJob } | { refusal: string };

/** A command as a job. All its problems are found before anything is done. Rejects only with the signal's reason. */
export async function readCommand(deps: NewJobDeps, event: CommandEvent, signal: AbortSignal): Promise<NewJob> {
  const { request, problems } = readImagineRequest(event.text, event.options ?? {});
  const source =
    request.basis === undefined ? undefined : await readBasis(deps, event, request.basis, problems, signal);
  const references = [...(source === undefined ? [] : [source.picture]), ...(event.attachments ?? [])];
  const model = await readModel(deps, request.model, problems, signal);
  if (references.length > deps.maxReferences) problems.push(describeTooMany(references, deps.maxReferences));
  if (problems.length > 0) return { refusal: describeProblems(problems) };
  const place = toPlace(event, source?.job);
  return { job: toJob({ ...place, after: source?.job.id, id: toTurnId(event.key), request, model, references }) };
}

/** The place where the pictures of an event are shown, and the conversation they belong to. */
function toPlace(
  { kind, author, reply: place, key, conversationId }: CommandEvent | ActionEvent,
  source: PictureJob | undefined,
): Pick<PictureJob, "conversationId" | "reply" | "author"> {
  const isOfPrivate = source?.reply.visibleTo !== undefined;
  // A picture that only one person saw stays between the bot and that person.
  const reply = isOfPrivate && place.visibleTo === undefined ? { ...place, visibleTo: author.id } : place;
  const goesOn = source !== undefined && (kind === "action" || isOfPrivate);
  const begun = { conversationId: goesOn ? source.conversationId : conversationId, reply, key };
  return { conversationId: toConversationOf(begun), reply, author };
}

/** The picture that is to be changed, with the job it is of. */
interface Basis {
  job: PictureJob;
  picture: AttachmentRef;
}

async function readBasis(
  { running }: NewJobDeps,
  event: CommandEvent,
  basis: string,
  problems: string[],
  signal: AbortSignal,
): Promise<Basis | undefined> {
  const id = readPictureId(basis);
  const job = id && (await running.findSettled(id.jobId, id.part, signal).catch(() => undefined));
  signal.throwIfAborted();
  const picture = id && job && attachmentOf(job, id.part);
  if (job !== undefined && !maySee(event, job))
    problems.push("the picture it is to start from is of another conversation");
  else if (job !== undefined && picture !== undefined) return { job, picture };
  else problems.push("the picture it is to start from is not kept any more");
  return undefined;
}

async function readModel(
  { listModels, model }: NewJobDeps,
  wanted: string | undefined,
  problems: string[],
  signal: AbortSignal,
): Promise<string> {
  if (wanted === undefined || wanted === model) return model;
  let models: readonly string[];
  try {
    models = await listModels(signal);
  } catch {
    signal.throwIfAborted();
    problems.push("the AI service doesn't list its models right now, so only the usual one can be used");
    return model;
  }
  const found = findModel(wanted, models);
  if (found !== undefined) return found;
  const near = nearModels(wanted, models);
  const meant = (near.length > 0 ? near : models.slice(0, 5)).map(quoteName).join(", ");
  problems.push(`the AI service has no model ${quoteName(wanted)} for pictures, but ${meant}`);
  return model;
}

export interface JobSource extends Pick<PictureJob, "id" | "conversationId" | "after" | "reply" | "author"> {
  request: ImagineRequest;
  model: string;
  references: AttachmentRef[];
}

export function toJob({ request, ...source }: JobSource): PictureJob {
  const { prompt, ratio, size, count, isSpoiler } = request;
  const parts = Array.from({ length: count }, () => ({ state: "pending" as const }));
  const fresh = { parts, isOver: false, isRemembered: true };
  return { v: 1, at: Date.now(), ...source, prompt, ratio, size, isSpoiler, ...fresh };
}

/**
 * Makes the job that a button under a picture asks for: the same once more, a variation, or the next size.
 */
export function toNextJob(event: ActionEvent, source: PictureJob, number: number, maxReferences: number): NewJob {
  const { action, key } = event;
  if (!maySee(event, source)) return { refusal: NOT_HERE };
  const count = action === "again" ? source.parts.length : 1;
  const parts = Array.from({ length: count }, () => ({ state: "pending" as const }));
  const fresh = {
    id: toTurnId(key),
    after: source.id,
    at: Date.now(),
    ...toPlace(event, source),
    isRemembered: true,
    parts,
    statusId: undefined,

    isOver: false,
  };
  if (action === "again") return { job: { ...source, ...fresh } };
  const picture = attachmentOf(source, number);
  if (picture === undefined) return { refusal: describeMissing(source.parts[number - 1]?.state) };
  if (action === "vary") {
    const references = [picture, ...source.references.filter(({ id }) => id !== picture.id)].slice(0, maxReferences);
    return { job: { ...source, ...fresh, change: "vary", references } };
  }
  const size = toNextSize(source.size);
  if (size === undefined) return { refusal: LARGEST };
  return { job: { ...source, ...fresh, change: "upscale", size, references: [picture] } };
}

function describeMissing(state: PicturePart["state"] | undefined): string {
  if (state === "pending") return NOT_READY;
  return state === "done" ? NOT_OPEN : TOO_OLD;
}
