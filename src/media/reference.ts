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
  /** This service's address for the gateway, without a trailing slash; undefined if the gateway cannot reach it. */
  relayUrl(): string | undefined;
  maxReferences: number;
  read: ReadPicture;
}

/** `parts` are in the order of the files. `problems` has one Markdown sentence for each unusable file. */
export type Prepared<Part = LinkedReference> = { ok: true; parts: Part[] } | { ok: false; problems: string[] };

/**
 * Turns attachments into reference images. Methods reject with the signal's reason, or if the store fails. An unusable
 * file is a problem, not a rejection. After `erase` and `forget`, links no longer work.
 */
export interface References extends Pick<Relay, "erase" | "forget"> {
  /** Creates links for a gateway that fetches images itself. A link works longer than an image request can take. */
  prepare(refs: readonly AttachmentRef[], owner: CopyOwner, signal: AbortSignal): Promise<Prepared>;
  /** Loads the bytes, for a gateway that receives images in the request. */
  load(refs: readonly AttachmentRef[], owner: CopyOwner, signal: AbortSignal): Promise<Prepared<LoadedReference>>;
}

type Outcome<Part> = { part: Part } | { problem: string };

const CONCURRENCY = 2;
const NO_ADDRESS =
  "is not public, so the AI service can fetch it only if PUBLIC_URL is set to this service's address on the internet";
const NO_LINK = `is no longer available from its platform. Attach it again; such files stay usable if PUBLIC_URL is set`;

export function createReferences(deps: ReferencesDeps): References {
  const { adapterOf, relay, relayUrl, maxReferences, read } = deps;

  async function linkOne(ref: AttachmentRef, owner: CopyOwner, signal: AbortSignal): Promise<Outcome<LinkedReference>> {
    const base = relayUrl();
    const adapter = findAdapter(ref);
    if (adapter === undefined) return { problem: describeAbsent(ref) };
    // A link of the platform that can expire at any time is used only if this service cannot relay the file.
    const hasLink = adapter.publicUrl !== undefined && !(ref.isFleeting === true && base !== undefined);
    if (!hasLink && base === undefined) return { problem: NO_ADDRESS };

    const picture = await read(ref, toReader(owner), signal);
    if ("problem" in picture) return picture;
    const mimeType = toLinkedType(picture, base !== undefined);
    if (hasLink && mimeType !== undefined) return await link(adapter, ref, mimeType, signal);
    if (base === undefined) return { problem: `must be converted first, and the copy ${NO_ADDRESS}` };
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
      return { ok: false, problems: [`${refs.length} images is too many: I can use at most ${maxReferences}.`] };
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

function toReader({ platform, authorId }: CopyOwner): string {
  return `${platform}:${authorId}`;
}

function describeAbsent({ platform }: AttachmentRef): string {
  return `is stored on ${platform}, which is not connected`;
}

/** Makes one sentence about a file. `problem` completes its second part, "it …". */
function describeUnusable(name: string, problem: string): string {
  return `I can't use \`${toShownFileName(name)}\` as a reference: it ${problem}.`;
}

/**
 * Returns the type of the image behind the platform's own link; undefined if the link is not usable. It is usable if
 * the image needs no change, or if the service cannot relay it and the gateway might accept it unchanged.
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
    // Hide the platform's response from the channel, because it can contain a signed address.
    signal.throwIfAborted();
  }
  return { problem: ref.isFleeting === true ? NO_LINK : "could not be fetched; attach it again" };
}

const ABOUT_REFERENCES =
  /file_?data|file_?uri|mime_?type|inline_?data|reference (?:image|picture)|(?:image|input)_file|(?:invalid|unsupported|corrupt\w*) (?:input )?(?:image|picture)/i;
const TOO_MANY =
  /too many (?:input |reference )?(?:images|pictures|files)|(?:at most|maximum (?:number )?of|up to|limit of|more than) \d* ?(?:input |reference )?(?:images|pictures)|(?:image|picture)s?\b.{0,30}(?:array too long|at most|exceeds? the (?:maximum|limit))|reference pictures?; at most/i;
const UNREACHABLE = /reach|fetch|download|retriev|access|connect|timed? ?out|not found|\b(?:403|404)\b/i;
const KINDS: ReadonlySet<string> = new Set(["mime_type_mismatch", "invalid_image", "unsupported_image_type"]);

/**
 * Makes a Markdown sentence about the attached image that made the gateway reject a request; undefined if the gateway
 * had another reason. `refs` are the request's files, in order.
 */
export function describeReferenceFailure(error: unknown, refs: readonly AttachmentRef[]): string | undefined {
  if (!(error instanceof GatewayError) || refs.length === 0) return undefined;
  if (error.kind !== "rejected" && error.kind !== "interrupted") return undefined;
  // Ignore a refusal by the model: it can mention the image, but has another reason.
  if (error.type === NO_PICTURE || isFiltered(error)) return undefined;
  const words = `${error.param ?? ""} ${error.message}`;
  if (refs.length > 1 && TOO_MANY.test(words)) {
    return `This model does not accept ${refs.length} images at once. Attach fewer.`;
  }
  if (!ABOUT_REFERENCES.test(words)) return undefined;
  const problem = isUnreachable(error)
    ? "could not be fetched by the AI service, which must reach it over the internet"
    : "was rejected by the AI service as damaged or unsupported; send it as PNG or JPEG";
  const ref = findRef(words, refs);
  return ref === undefined
    ? `I can't use one of the ${refs.length} images as a reference: it ${problem}.`
    : describeUnusable(ref.name, problem);
}

function isUnreachable({ code, message, param }: GatewayError): boolean {
  if (code === "file_not_reachable") return true;
  if (code !== undefined && KINDS.has(code)) return false;
  return UNREACHABLE.test(message) || /file_?uri/i.test(param ?? "");
}

/** In a request, the prompt comes first and the references follow. */
function findRef(words: string, refs: readonly AttachmentRef[]): AttachmentRef | undefined {
  const [, part] = /parts(?:\[|\.)(\d+)/i.exec(words) ?? [];
  const named = part === undefined ? undefined : refs[Number(part) - 1];
  return named ?? (refs.length === 1 ? refs[0] : undefined);
}
