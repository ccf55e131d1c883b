import { mapBounded } from "../concurrency/deadlines.ts";
import { GatewayError } from "../gateway/errors.ts";
import { isFiltered, NO_PICTURE } from "../gateway/image-answer.ts";
import type { LinkedReference, LoadedReference } from "../gateway/image-ways.ts";
import type { Adapter } from "../port/adapter.ts";
import type { AttachmentRef } from "../port/events.ts";
import { toShownFileName } from "./file-problem.ts";
import type { CopyOwner } from "./picture-copies.ts";
import type { ReadPicture, ReferencePicture } from "./reference-picture.ts";
import type { Relay } from "./relay.ts";

export interface ReferencesDeps {
  adapterOf(platform: string): Pick<Adapter, "publicUrl">;
  relay: Pick<Relay, "publish" | "erase" | "forget">;
  /** The address at which the gateway reaches this service, without a slash at the end; undefined where it cannot. */
  relayUrl(): string | undefined;
  maxReferences: number;
  read: ReadPicture;
}

/** `parts` in the order of the files, or one sentence of Markdown for each file that cannot be used. */
export type Prepared<Part = LinkedReference> = { ok: true; parts: Part[] } | { ok: false; problems: string[] };

/**
 * Makes what people attach into pictures to start from. Methods reject with the signal's reason, and when the store does
 * not answer; a file that cannot be used is a problem. `erase` and `forget` end the links.
 */
export interface References extends Pick<Relay, "erase" | "forget"> {
  /** Links for a gateway that fetches pictures itself. Each works for longer than an image request may take. */
  prepare(refs: readonly AttachmentRef[], owner: CopyOwner, signal: AbortSignal): Promise<Prepared>;
  /** The bytes, for a gateway that receives them with the request. */
  load(refs: readonly AttachmentRef[], owner: CopyOwner, signal: AbortSignal): Promise<Prepared<LoadedReference>>;
}

type Outcome<Part> = { part: Part } | { problem: string };

const CONCURRENCY = 2;
const NO_ADDRESS =
  "is not public, and the AI service can only fetch it once PUBLIC_URL is set to the address under which this service is reached from the internet";
const NO_LINK = `was kept by its platform for a while only. Attach it again; such a file stays usable where PUBLIC_URL is set`;

export function createReferences(deps: ReferencesDeps): References {
  const { adapterOf, relay, relayUrl, maxReferences, read } = deps;

  async function linkOne(ref: AttachmentRef, owner: CopyOwner, signal: AbortSignal): Promise<Outcome<LinkedReference>> {
    const base = relayUrl();
    const adapter = findAdapter(ref);
    if (adapter === undefined) return { problem: describeAbsent(ref) };
    // A link that may end any time is a poor one where there is a better.
    const hasLink = adapter.publicUrl !== undefined && !(ref.isFleeting === true && base !== undefined);
    if (!hasLink && base === undefined) return { problem: NO_ADDRESS };

    const picture = await read(ref, toReader(owner), signal);
    if ("problem" in picture) return picture;
    const mimeType = toLinkedType(picture, base !== undefined);
    if (hasLink && mimeType !== undefined) return await link(adapter, ref, mimeType, signal);
    if (base === undefined) return { problem: `has to be converted first, and then ${NO_ADDRESS}` };
    return { part: { fileUri: base + (await relay.publish(ref, picture, owner)), mimeType: picture.mimeType } };
  }

  async function loadOne(ref: AttachmentRef, owner: CopyOwner, signal: AbortSignal): Promise<Outcome<LoadedReference>> {
    if (findAdapter(ref) === undefined) return { problem: describeAbsent(ref) };
    const picture = await read(ref, toReader(owner), signal);
    return "problem" in picture ? picture : { part: { bytes: picture.bytes, mimeType: picture.mimeType } };
  }

  async function prepareAll<Part>(
    refs: readonly AttachmentRef[],
    prepareOne: (ref: AttachmentRef) => Promise<Outcome<Part>>,
  ): Promise<Prepared<Part>> {
    if (refs.length > maxReferences) {
      return { ok: false, problems: [`${refs.length} pictures are too many: at most ${maxReferences} can be used.`] };
    }
    const outcomes = await mapBounded(refs, CONCURRENCY, prepareOne);
    const problems = outcomes.flatMap((outcome, index) =>
      "problem" in outcome ? [describeUnusable(refs[index]?.name ?? "", outcome.problem)] : [],
    );
    if (problems.length > 0) return { ok: false, problems };
    return { ok: true, parts: outcomes.flatMap((outcome) => ("part" in outcome ? [outcome.part] : [])) };
  }

  function findAdapter({ platform }: AttachmentRef) {
    try {
      return adapterOf(platform);
    } catch {
      return undefined;
    }
  }

  return {
    erase: relay.erase,
    forget: relay.forget,
    prepare: (refs, owner, signal) => prepareAll(refs, (ref) => linkOne(ref, owner, signal)),
    load: (refs, owner, signal) => prepareAll(refs, (ref) => loadOne(ref, owner, signal)),
  };
}

/** The name under which readers of files take turns. */
function toReader({ platform, authorId }: CopyOwner): string {
  return `${platform}:${authorId}`;
}

function describeAbsent({ platform }: AttachmentRef): string {
  return `is kept on ${platform}, which is not switched on`;
}

/** One sentence about a file; `problem` completes the one that begins "it …". */
function describeUnusable(name: string, problem: string): string {
  return `\`${toShownFileName(name)}\` cannot be used as a reference: it ${problem}.`;
}

/**
 * The picture behind the platform's own link, when that may be handed out: the picture needs no change, or
 * there is no other way and the gateway may well take it as it is.
 */
function toLinkedType({ isChanged, mimeType, originalType }: ReferencePicture, canRelay: boolean): string | undefined {
  if (!isChanged) return mimeType;
  return canRelay ? undefined : originalType;
}

async function link(
  adapter: Pick<Adapter, "publicUrl">,
  ref: AttachmentRef,
  mimeType: string,
  signal: AbortSignal,
): Promise<Outcome<LinkedReference>> {
  try {
    const fileUri = await adapter.publicUrl?.(ref, signal);
    if (fileUri !== undefined) return { part: { fileUri, mimeType } };
  } catch {
    // The platform's answer is not for the channel, and may carry a signed address.
    signal.throwIfAborted();
  }
  return { problem: ref.isFleeting === true ? NO_LINK : "could not be fetched; attach it again" };
}

/** The names that gateways have for a reference and its fields, in either spelling. */
const ABOUT_REFERENCES =
  /file_?data|file_?uri|mime_?type|inline_?data|reference (?:image|picture)|(?:image|input)_file|(?:invalid|unsupported|corrupt\w*) (?:input )?(?:image|picture)/i;
const TOO_MANY =
  /too many (?:input |reference )?(?:images|pictures|files)|(?:at most|maximum (?:number )?of|up to|limit of|more than) \d* ?(?:input |reference )?(?:images|pictures)|(?:image|picture)s?\b.{0,30}(?:array too long|at most|exceeds? the (?:maximum|limit))|reference pictures?; at most/i;
const UNREACHABLE = /reach|fetch|download|retriev|access|connect|timed? ?out|not found|\b(?:403|404)\b/i;
const KINDS: ReadonlySet<string> = new Set(["mime_type_mismatch", "invalid_image", "unsupported_image_type"]);

/**
 * One sentence of Markdown on the attached picture because of which the gateway refused a request, and why; undefined
 * when it was refused for something else. `refs` are those of the request, in its order.
 */
export function describeReferenceFailure(error: unknown, refs: readonly AttachmentRef[]): string | undefined {
  if (!(error instanceof GatewayError) || refs.length === 0) return undefined;
  if (error.kind !== "rejected" && error.kind !== "interrupted") return undefined;
  // A model that declines may well speak of the picture, and says itself what it does not like.
  if (error.type === NO_PICTURE || isFiltered(error)) return undefined;
  const words = `${error.param ?? ""} ${error.message}`;
  if (refs.length > 1 && TOO_MANY.test(words)) {
    return `The AI service does not take ${refs.length} pictures at once with this model. Attach fewer.`;
  }
  if (!ABOUT_REFERENCES.test(words)) return undefined;
  const problem = isUnreachable(error)
    ? "could not be fetched by the AI service, which has to reach it from the internet"
    : "is of a kind or in a state that the AI service does not take; send it as PNG or JPEG";
  const ref = findRef(words, refs);
  return ref === undefined
    ? `One of the ${refs.length} pictures cannot be used as a reference: it ${problem}.`
    : describeUnusable(ref.name, problem);
}

function isUnreachable({ code, message, param }: GatewayError): boolean {
  if (code === "file_not_reachable") return true;
  if (code !== undefined && KINDS.has(code)) return false;
  return UNREACHABLE.test(message) || /file_?uri/i.test(param ?? "");
}

/** The prompt is the first part of a request, and the references are those after it. */
function findRef(words: string, refs: readonly AttachmentRef[]): AttachmentRef | undefined {
  const [, part] = /parts(?:\[|\.)(\d+)/i.exec(words) ?? [];
  const named = part === undefined ? undefined : refs[Number(part) - 1];
  return named ?? (refs.length === 1 ? refs[0] : undefined);
}
