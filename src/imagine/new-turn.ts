import { findModel, nearModels } from "../models/model-list.ts";
import type { Access } from "../policy/access.ts";
import type { ListModels } from "../port/catalogue.ts";
import type { ActionEvent, AttachmentRef, Author, CommandEvent } from "../port/events.ts";
import { readPictureId, toConversationOf, toTurnId } from "../port/ids.ts";
import { quoteName } from "../text/quote-name.ts";
import { attachmentOf, type PicturePart, type PictureTurn, toFreshRecord } from "../turn/record.ts";
import { maySee, NOT_HERE } from "../turn/rights.ts";
import type { FindPicture } from "./find-picture.ts";
import { describeProblems, describeTooMany, type ImagineRequest, readImagineRequest, toNextSize } from "./request.ts";

/** Refusals for an image that is no longer stored, cannot be opened, or is not ready. */
export const TOO_OLD = "This image is too old: I no longer have its request. Please ask again.";
const NOT_OPEN = "I can't open this image again here, so I can't start from it.";
const NOT_READY = "This image isn't finished yet. Press the button again in a moment.";
const LARGEST = "This image is already at the largest size.";

export interface NewTurnDeps extends FindPicture {
  findRefusal: FindRefusal;
  listModels: ListModels;
  model: string;
  maxReferences: number;
}

type CommandDeps = Pick<NewTurnDeps, "findSettled" | "listModels" | "model" | "maxReferences">;

/** A turn that has not started, or a refusal. */
export type NewTurn = { turn: PictureTurn } | { refusal: string };

/** Turns a command or a button press into a turn. Rejects with the signal's reason, or if the store is unavailable. */
export async function readTurn(
  deps: NewTurnDeps,
  event: CommandEvent | ActionEvent,
  signal: AbortSignal,
): Promise<NewTurn> {
  const made = await (event.kind === "command" ? readCommand(deps, event, signal) : readPress(deps, event, signal));
  const refusal = "turn" in made ? await deps.findRefusal(made.turn) : undefined;
  return refusal === undefined ? made : { refusal };
}

async function readPress(
  { find, findSettled, maxReferences }: NewTurnDeps,
  event: ActionEvent,
  signal: AbortSignal,
): Promise<NewTurn> {
  const { turnId, part } = readPictureId(event.turnId) ?? { turnId: "", part: 0 };
  const source = await (event.action === "again" ? find(turnId) : findSettled(turnId, part, signal));
  return source === undefined ? { refusal: TOO_OLD } : toNextTurn(event, source, part, maxReferences);
}

/** Resolves to a refusal if this author, by default the turn's, must not create the image. */
export type FindRefusal = (turn: PictureTurn, author?: Author) => Promise<string | undefined>;

export function createFindRefusal({ judge }: Pick<Access, "judge">): FindRefusal {
  return async ({ model, references, change, reply, ...turn }, author = turn.author) => {
    const decide = await judge();
    // Do not count the bot's own image, which is the first reference if a button starts the turn.
    const files = references.length - (change === undefined ? 0 : 1);
    const permissions = ["pictures", `model:${model}`, ...(files > 0 ? ["files" as const] : [])] as const;
    const decisions = permissions.map((permission) => decide({ author, reply }, permission));
    return decisions.find(({ isAllowed }) => !isAllowed)?.refusal;
  };
}

/** Turns a command into a turn, or into a refusal that lists all problems. Rejects only with the signal's reason. */
export async function readCommand(deps: CommandDeps, event: CommandEvent, signal: AbortSignal): Promise<NewTurn> {
  const { request, problems } = readImagineRequest(event.text, event.options ?? {});
  const source =
    request.basis === undefined ? undefined : await readBasis(deps, event, request.basis, problems, signal);
  const references = [...(source === undefined ? [] : [source.picture]), ...(event.attachments ?? [])];
  const model = await readModel(deps, request.model, problems, signal);
  if (references.length > deps.maxReferences) problems.push(describeTooMany(references, deps.maxReferences));
  if (problems.length > 0) return { refusal: describeProblems(problems) };
  const place = toPlace(event, source?.turn);
  return { turn: toTurn({ ...place, after: source?.turn.id, id: toTurnId(event.key), request, model, references }) };
}

/** Returns where an event's images are shown, and the conversation that they belong to. */
function toPlace(
  { kind, author, reply: place, key, conversationId }: CommandEvent | ActionEvent,
  source: PictureTurn | undefined,
): Pick<PictureTurn, "conversationId" | "reply" | "author"> {
  const isOfPrivate = source?.reply.visibleTo !== undefined;
  // If the source image is private, the new image stays private to the same person.
  const reply = isOfPrivate && place.visibleTo === undefined ? { ...place, visibleTo: author.id } : place;
  const goesOn = source !== undefined && (kind === "action" || isOfPrivate);
  const begun = { conversationId: goesOn ? source.conversationId : conversationId, reply, key };
  return { conversationId: toConversationOf(begun), reply, author };
}

interface Basis {
  turn: PictureTurn;
  picture: AttachmentRef;
}

async function readBasis(
  { findSettled }: CommandDeps,
  event: CommandEvent,
  basis: string,
  problems: string[],
  signal: AbortSignal,
): Promise<Basis | undefined> {
  const id = readPictureId(basis);
  const turn = id && (await findSettled(id.turnId, id.part, signal).catch(() => undefined));
  signal.throwIfAborted();
  const picture = id && turn && attachmentOf(turn, id.part);
  if (turn !== undefined && !maySee(event, turn))
    problems.push("the image to start from belongs to another conversation");
  else if (turn !== undefined && picture !== undefined) return { turn, picture };
  else problems.push("the image to start from is no longer stored");
  return undefined;
}

async function readModel(
  { listModels, model }: CommandDeps,
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
    problems.push("the AI service doesn't list its models right now, so I can use only the default one");
    return model;
  }
  const found = findModel(wanted, models);
  if (found !== undefined) return found;
  const near = nearModels(wanted, models);
  const meant = (near.length > 0 ? near : models.slice(0, 5)).map(quoteName).join(", ");
  problems.push(`the AI service has no image model ${quoteName(wanted)}, but ${meant}`);
  return model;
}

export interface TurnSource extends Pick<PictureTurn, "id" | "conversationId" | "reply" | "author"> {
  /** The id of the history entry that the images continue. */
  after: string | undefined;
  request: ImagineRequest;
  model: string;
  references: AttachmentRef[];
}

export function toTurn({ request, model, references, after, ...place }: TurnSource): PictureTurn {
  const { prompt, ratio, size, count, isSpoiler } = request;
  const asked = { prompt, ratio, size, isSpoiler, model, references };
  return { ...toFreshRecord(place), ...asked, at: Date.now(), after, parts: toPending(count) };
}

function toPending(count: number): PicturePart[] {
  return Array.from({ length: count }, () => ({ state: "pending" }));
}

/** Creates the turn for a button under an image: the same request again, a variation, or the next size. */
export function toNextTurn(event: ActionEvent, source: PictureTurn, number: number, maxReferences: number): NewTurn {
  const { action, key } = event;
  if (!maySee(event, source)) return { refusal: NOT_HERE };
  const { prompt, change, model, ratio, size, isSpoiler, references, parts } = source;
  const asked = { prompt, change, model, ratio, size, isSpoiler, references };
  const count = action === "again" ? parts.length : 1;
  const fresh = {
    ...toFreshRecord({ id: toTurnId(key), ...toPlace(event, source) }),
    at: Date.now(),
    after: source.id,
  };
  const turn: PictureTurn = { ...fresh, ...asked, parts: toPending(count) };
  if (action === "again") return { turn };
  const picture = attachmentOf(source, number);
  if (picture === undefined) return { refusal: describeMissing(parts[number - 1]?.state) };
  if (action === "vary") {
    const others = references.filter(({ id }) => id !== picture.id);
    return { turn: { ...turn, change: "vary", references: [picture, ...others].slice(0, maxReferences) } };
  }
  const nextSize = toNextSize(size);
  if (nextSize === undefined) return { refusal: LARGEST };
  return { turn: { ...turn, change: "upscale", size: nextSize, references: [picture] } };
}

function describeMissing(state: PicturePart["state"] | undefined): string {
  if (state === "pending") return NOT_READY;
  return state === "done" ? NOT_OPEN : TOO_OLD;
}
