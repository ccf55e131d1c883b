import { flatten } from "./component-rules.ts";
import type { FormProblem } from "./refusals.ts";
import type { Payload } from "./world.ts";

const MAX_FIELDS = 5;
/** Types of the components that can contain a field: action row and label. */
const HOLDERS = new Set([1, 18]);
const TEXT_DISPLAY = 10;
const LABEL = 18;
const STRING_SELECT = 3;
const TEXT_INPUT = 4;
const FILE_UPLOAD = 19;

/** Returns the problems for which Discord would refuse a form. */
export function findModalProblems(modal: Payload): FormProblem[] {
  const { title, custom_id: id, components } = modal;
  const holders = Array.isArray(components) ? (components as Payload[]) : [];
  const problems: FormProblem[] = [];
  if (!hasLength(title, 1, 45)) problems.push(badLength(["title"], "between 1 and 45"));
  if (!hasLength(id, 1, 100)) problems.push(badLength(["custom_id"], "between 1 and 100"));
  if (holders.length < 1 || holders.length > MAX_FIELDS) problems.push(badLength(["components"], "between 1 and 5"));
  for (const [index, holder] of holders.entries()) {
    const { type } = holder;
    if (type === LABEL) problems.push(...findFieldProblems(holder, ["components", String(index)]));
    if (HOLDERS.has(Number(type)) || type === TEXT_DISPLAY) continue;
    const message = 'Value of field "type" must be one of (1, 10, 18).';
    problems.push({ path: ["components", index, "type"], code: "UNION_TYPE_CHOICES", message });
  }
  return problems;
}

/** Returns the problems of a label and its field. */
function findFieldProblems({ label, component }: Payload, path: string[]): FormProblem[] {
  const field = (component ?? {}) as Payload;
  const problems: FormProblem[] = [];
  if (!hasLength(label, 1, 45)) problems.push(badLength([...path, "label"], "between 1 and 45"));
  if (!hasLength(field["custom_id"], 1, 100)) problems.push(badLength([...path, "custom_id"], "between 1 and 100"));
  if (field["type"] === TEXT_INPUT && !hasLength(field["value"] ?? "", 0, 4000)) {
    problems.push(badLength([...path, "value"], "at most 4000"));
  }
  if (field["type"] === FILE_UPLOAD) {
    const { min_values: min = 1, max_values: max = 1 } = field;
    const fits = Number(min) >= 0 && Number(min) <= Number(max) && Number(max) >= 1 && Number(max) <= 10;
    if (!fits) problems.push(badLength([...path, "max_values"], "between 1 and 10"));
  }
  if (field["type"] !== STRING_SELECT) return problems;
  const options = Array.isArray(field["options"]) ? (field["options"] as Payload[]) : [];
  if (options.length < 1 || options.length > 25) problems.push(badLength([...path, "options"], "between 1 and 25"));
  const isFine = options.every(({ label, value }) => hasLength(label, 1, 100) && hasLength(value, 1, 100));
  if (!isFine) problems.push(badLength([...path, "options"], "between 1 and 100"));
  if (new Set(options.map(({ value }) => value)).size < options.length) {
    const message = "The specified option value is already used";
    problems.push({ path: [...path, "options"], code: "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", message });
  }
  return problems;
}

/** Returns the fields of a form by id. */
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
