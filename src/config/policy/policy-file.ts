import { createRequire } from "node:module";
import { z } from "zod";
import { editDistance } from "../../text/edit-distance.ts";
import type { ReadText } from "../mcp-servers.ts";
import { access } from "./access.ts";
import { models } from "./models.ts";
import { prices } from "./prices.ts";
import { quotas } from "./quotas.ts";

/** Far more than all rules and prices together can take; more would hold up everybody while it is read. */
const MAX_CHARS = 500_000;
/** Letters in which a misspelt field differs from a known one. */
const MAX_SLIPS = 2;

const sections = {
  access: access.optional(),
  quotas: quotas.optional(),
  prices: prices.optional(),
  models: models.optional(),
};

/** The whole file. `$schema` is for editors. */
export const policySchema = z.strictObject({ $schema: z.string().optional(), ...sections }, "must be an object");

/** Permissions, quotas, prices and models. An absent section changes nothing. */
export type Policy = Omit<z.output<typeof policySchema>, "$schema">;

export interface PolicySettings {
  policy: Policy;
  /** Everything that is wrong, each in one sentence without a full stop. */
  problems: readonly string[];
}

/** Reads the file, which is YAML or JSON. */
export function readPolicyFile(path: string, readText: ReadText): PolicySettings {
  let text: string;
  try {
    text = readText(path);
  } catch {
    return refuse("must be the path of a file that can be read");
  }
  return readPolicy(text);
}

function readPolicy(text: string): PolicySettings {
  if (text.length > MAX_CHARS) return refuse(`must not have more than ${MAX_CHARS} characters`);
  // Loaded where there is such a file: its seventy modules would slow down every start.
  const { parseDocument } = createRequire(import.meta.url)("yaml") as typeof import("yaml");
  const document = parseDocument(text, { prettyErrors: true });
  if (document.errors.length > 0) {
    const lines = document.errors.map(
      ({ linePos, code }) => `is not valid YAML in line ${linePos?.[0].line ?? 1} (${code})`,
    );
    return { policy: {}, problems: [...new Set(lines)] };
  }
  let content: unknown;
  try {
    content = document.toJS() ?? {};
  } catch {
    return refuse("has an alias (*) of an anchor that it does not have, or too many of them");
  }
  const { success, data, error } = policySchema.safeParse(content);
  if (!success) return { policy: {}, problems: error.issues.flatMap(describeIssue) };
  const { $schema: _, ...policy } = data;
  return { policy, problems: [] };
}

function refuse(problem: string): PolicySettings {
  return { policy: {}, problems: [problem] };
}

/** Names the place as people write it: `access[2].who`. */
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
