import { createRequire } from "node:module";
import type { Document } from "yaml";
import { z } from "zod";
import { editDistance } from "../../text/edit-distance.ts";
import type { ReadText } from "../mcp-servers.ts";
import { TooLargeError } from "../read-text.ts";
import { access } from "./access.ts";
import { models } from "./models.ts";
import { prices } from "./prices.ts";
import { quotas } from "./quotas.ts";

/** Further problems are only counted. */
const MAX_PROBLEMS = 50;
/** Suggests a known field for an unknown one if at most this many edits separate them. */
const MAX_SLIPS = 2;

const sections = {
  access: access.optional(),
  quotas: quotas.optional(),
  prices: prices.optional(),
  models: models.optional(),
};

/** The whole file. Only editors use `$schema`. */
export const policySchema = z.strictObject({ $schema: z.string().optional(), ...sections }, "must be an object");

/** Permissions, quotas, prices and models. An absent section restricts nothing. */
export type Policy = Omit<z.output<typeof policySchema>, "$schema">;

export interface PolicySettings {
  policy: Policy;
  /** Each problem is one sentence without a full stop. */
  problems: readonly string[];
}

export function readPolicyFile(path: string, readText: ReadText): PolicySettings {
  let text: string;
  try {
    text = readText(path);
  } catch (error) {
    return refuse(error instanceof TooLargeError ? error.message : "must be the path of a file that can be read");
  }
  try {
    return readPolicy(text);
  } catch (error) {
    // The parser is recursive, so deep nesting can exhaust the stack.
    if (error instanceof RangeError) return refuse("has too many levels");
    throw error;
  }
}

function readPolicy(text: string): PolicySettings {
  // Load the parser only if there is a policy file, because its seventy modules would slow down every start.
  const { LineCounter, parseDocument } = createRequire(import.meta.url)("yaml") as typeof import("yaml");
  const lineCounter = new LineCounter();
  // Skips the library's own check, which compares each key with all others in quadratic time.
  const document = parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: false });
  const wrong = [...document.errors.map(({ pos, code }) => ({ at: pos[0], code })), ...findDuplicateKeys(document)];
  if (wrong.length > 0) {
    return refuse(
      ...wrong.map(({ at, code }) => `is not valid YAML in line ${lineCounter.linePos(at).line} (${code})`),
    );
  }
  let content: unknown;
  try {
    content = document.toJS();
  } catch {
    return refuse("has an alias (*) to a missing anchor, or too many aliases");
  }
  // A full disk or a lost ConfigMap can leave an empty file, which must not allow everything.
  if (content === null || content === undefined) return refuse("is empty: write {} for a policy without rules");
  const { success, data, error } = policySchema.safeParse(content);
  if (!success) return refuse(...error.issues.flatMap(describeIssue));
  const { $schema: _, ...policy } = data;
  return { policy, problems: [] };
}

function findDuplicateKeys(document: Document.Parsed): Array<{ at: number; code: string }> {
  const { isScalar, visit } = createRequire(import.meta.url)("yaml") as typeof import("yaml");
  const found: Array<{ at: number; code: string }> = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const key of items.map((pair) => pair.key).filter(isScalar)) {
        if (seen.has(key.value)) found.push({ at: key.range?.[0] ?? 0, code: "DUPLICATE_KEY" });
        seen.add(key.value);
      }
    },
  });
  return found;
}

function refuse(...given: string[]): PolicySettings {
  const problems = [...new Set(given)];
  const rest = problems.length - MAX_PROBLEMS;
  if (rest <= 0) return { policy: {}, problems };
  return { policy: {}, problems: [...problems.slice(0, MAX_PROBLEMS), `has ${rest} more problems`] };
}

/** Writes the position of an issue as `access[2].who`. */
function describeIssue(issue: z.core.$ZodIssue): string[] {
  const place = issue.path.reduce<string>(
    (before, part) =>
      typeof part === "number" ? `${before}[${part}]` : before === "" ? String(part) : `${before}.${String(part)}`,
    "",
  );
  if (issue.code !== "unrecognized_keys") return [`${place} ${issue.message}`.trim()];
  return issue.keys.map((key) => {
    const near =
      issue.path.length === 0 ? Object.keys(sections).filter((name) => editDistance(key, name) <= MAX_SLIPS) : [];
    return `${place === "" ? key : `${place}.${key}`} is not known${near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`}`;
  });
}
