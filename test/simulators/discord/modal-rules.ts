import { flatten } from "./component-rules.ts";
import type { FormProblem } from "./refusals.ts";
import type { Payload } from "./world.ts";

const MAX_FIELDS = 5;
/** An action row or a label around each field. */
const HOLDERS = new Set([1, 18]);
const TEXT_DISPLAY = 10;

/** What Discord would not accept of a form. */
export function findModalProblems(modal: Payload): FormProblem[] {
  const { title, custom_id: id, components } = modal;
  const holders = Array.isArray(components) ? (components as Payload[]) : [];
  const problems: FormProblem[] = [];
  if (!hasLength(title, 1, 45)) problems.push(badLength(["title"], "between 1 and 45"));
  if (!hasLength(id, 1, 100)) problems.push(badLength(["custom_id"], "between 1 and 100"));
  if (holders.length < 1 || holders.length > MAX_FIELDS) problems.push(badLength(["components"], "between 1 and 5"));
  for (const [index, { type }] of holders.entries()) {
    if (HOLDERS.has(Number(type)) || type === TEXT_DISPLAY) continue;
    const message = 'Value of field "type" must be one of (1, 10, 18).';
    problems.push({ path: ["components", index, "type"], code: "UNION_TYPE_CHOICES", message });
  }
  return problems;
}

/** The fields of a form, by their ids. */
export function fieldsOf(modal: Payload): Map<string, Payload> {
  const components = modal["components"];
  const placed = flatten(Array.isArray(components) ? components : []);
  return new Map(
    placed.flatMap(({ component }) => {
      const id = component["custom_id"];
      return typeof id === "string" ? [[id, component] as const] : [];
    }),
  );
}

function hasLength(value: unknown, min: number, max: number): boolean {
  return typeof value === "string" && value.length >= min && value.length <= max;
}

function badLength(path: string[], bounds: string): FormProblem {
  return { path, code: "BASE_TYPE_BAD_LENGTH", message: `Must be ${bounds} in length.` };
}
