import { GatewayError } from "../gateway/errors.ts";
import { NO_PICTURE } from "../gateway/images.ts";
import type { AttachmentRef } from "../port/events.ts";
import { describeUnusable } from "./reference.ts";

/** The names that the interface has for a reference and its fields, in either spelling. */
const ABOUT_REFERENCES = /file_?data|file_?uri|mime_?type|inline_?data|reference (?:image|picture)/i;
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
  if (error.type === NO_PICTURE) return undefined;
  const words = `${error.param ?? ""} ${error.message}`;
  if (!ABOUT_REFERENCES.test(words)) return undefined;
  const problem = isUnreachable(error)
    ? "could not be fetched by the gateway, which has to reach it from the internet"
    : "is of a kind or in a state that the gateway does not take; send it as PNG or JPEG";
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
