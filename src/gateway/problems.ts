import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** One broken rule in plain words: where, what must be, and what is there unless that is somebody's text. */
export function describeIssue(issue: Issue): string {
  const deeper = issue.code === "invalid_union" ? findBranch(issue) : undefined;
  if (deeper !== undefined) return describeIssue({ ...deeper, path: [...issue.path, ...deeper.path] });
  const where = issue.path.length === 0 ? "it" : describePath(issue.path);
  if (issue.code !== "unrecognized_keys" && issue.input === undefined) return `${where} is missing`;
  return `${where} ${describeRule(issue)}`;
}

function describeRule(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${describeType(issue.expected)}${describeInput(issue.input)}`;
    case "too_small":
      return issue.origin === "number" || issue.origin === "int"
        ? `must be at least ${issue.minimum}${describeInput(issue.input)}`
        : "must not be empty";
    case "too_big":
      return `must be at most ${issue.maximum}${describeInput(issue.input)}`;
    case "unrecognized_keys":
      return `has ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}, which the interface does not list`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "invalid_union":
      return `has none of the ${issue.discriminator === undefined ? "forms" : "values"} the interface lists`;
    case "invalid_format":
    case "custom":
      return issue.message;
    case "invalid_element":
    case "invalid_key":
    case "not_multiple_of":
    default:
      return "is not what the interface asks for";
  }
}

/** Of the forms a value may have, the one it nearly has: the problem lies inside it. */
function findBranch(issue: z.core.$ZodIssueInvalidUnion): Issue | undefined {
  if (issue.errors.length === 0) return undefined;
  return issue.errors.find((branch) => branch[0] !== undefined && isInside(branch[0]))?.[0];
}

function isInside(issue: Issue): boolean {
  return issue.path.length > 0 || issue.code === "unrecognized_keys" || issue.code === "too_small";
}

/** `messages[2].content[0].type`. */
function describePath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? String(step) : `${text}.${String(step)}`;
  }, "");
}

function describeType(expected: string): string {
  if (expected === "int") return "an integer";
  if (expected === "array") return "a list";
  return expected === "object" || expected === "record" ? "an object" : `a ${expected}`;
}

/** Numbers are shown; texts may be somebody's words. */
function describeInput(input: unknown): string {
  return typeof input === "number" ? `, not ${input}` : "";
}
