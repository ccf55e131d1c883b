import type { z } from "zod";
import { type ApiError, toInvalidRequest } from "./errors.ts";
import { describeType } from "./json-body.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Checks a body against a table of fields. Throws a 400 for the first invalid field. */
export function checkFields<T extends z.ZodType>(table: T, body: unknown): z.infer<T> {
  const result = table.safeParse(body, { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue === undefined) throw new Error("The field table refused a body without saying why.");
  throw toFieldError(issue, []);
}

/** Writes a field's path as error objects do: `messages[0].content`. */
export function toParam(path: Path): string {
  return path.reduce<string>((param, key) => {
    if (typeof key === "number") return `${param}[${key}]`;
    return param === "" ? String(key) : `${param}.${String(key)}`;
  }, "");
}

function toFieldError(issue: Issue, parent: Path): ApiError {
  const path = [...parent, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const param = toParam([...path, issue.keys[0] ?? ""]);
    return toInvalidRequest(`${param} is not a field of this request.`, "unknown_parameter", param);
  }
  const param = toParam(path);
  const value = inputOf(issue);
  if (value === undefined) {
    return toInvalidRequest(`${param} is required and was not sent.`, "missing_required_parameter", param);
  }
  const inner = issue.code === "invalid_union" ? closestBranch(issue.errors) : undefined;
  if (inner !== undefined) return toFieldError(inner, path);
  const { code, rule } = readRule(issue, value);
  return toInvalidRequest(`${param} ${rule}`, code, param);
}

/** Returns the wrong value. Zod's issue about a discriminator is about the object that contains the value. */
function inputOf(issue: Issue): unknown {
  if (!("discriminator" in issue) || typeof issue.discriminator !== "string") return issue.input;
  return Reflect.get(Object(issue.input), issue.discriminator);
}

/** Finds the issue of the alternative that was probably meant: its type matches, and its issue is deeper inside. */
function closestBranch(branches: Issue[][]): Issue | undefined {
  return branches.flat().find((issue) => issue.path.length > 0 || issue.code !== "invalid_type");
}

function readRule(issue: Issue, value: unknown): { code: string; rule: string } {
  if (issue.code === "invalid_type") {
    // JSON can contain numbers that are too large for JavaScript.
    const isEndless = value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
    const sent = isEndless ? "one beyond all bounds" : describeType(value);
    return { code: "invalid_type", rule: `must be ${withArticle(issue.expected)}, not ${sent}.` };
  }
  if (issue.code === "too_small" || issue.code === "too_big") return readBound(issue);
  if (issue.code === "invalid_value") return { code: "invalid_value", rule: `must be ${toOptions(issue.values)}.` };
  if (issue.code !== "invalid_union") return { code: "invalid_value", rule: issue.message };
  const types = issue.errors
    .flat()
    .flatMap((branch) => (branch.code === "invalid_type" ? [withArticle(branch.expected)] : []));
  if (types.length === 0) return { code: "invalid_value", rule: `must be ${readOptions(issue)}.` };
  return { code: "invalid_type", rule: `must be ${types.join(" or ")}, not ${describeType(value)}.` };
}

/** Lists the values of a discriminator. Zod's issues have them at run time, but not in their types. */
function readOptions(issue: object): string {
  return toOptions("options" in issue && Array.isArray(issue.options) ? issue.options : []);
}

function toOptions(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(" or ");
}

function readBound(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): { code: string; rule: string } {
  const isBelow = issue.code === "too_small";
  const bound = isBelow ? `at least ${issue.minimum}` : `at most ${issue.maximum}`;
  const edge = isBelow ? "below_min" : "above_max";
  const isEmpty = isBelow && issue.minimum === 1;
  if (issue.origin === "array") {
    const rule = isEmpty ? "must not be empty." : `must have ${bound} entries.`;
    return { code: isBelow ? "empty_array" : "array_above_max_length", rule };
  }
  if (issue.origin === "string") {
    return { code: `string_${edge}_length`, rule: isEmpty ? "must not be empty." : `must have ${bound} characters.` };
  }
  return { code: `number_${edge}_value`, rule: `must be ${bound}.` };
}

function withArticle(type: string): string {
  const name = type === "int" ? "integer" : type === "record" ? "object" : type;
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}
