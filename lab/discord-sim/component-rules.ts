import type { FormProblem } from "./refusals.ts";
import type { Payload } from "./world.ts";

const ROW = 1;
const BUTTON = 2;
const TEXT_DISPLAY = 10;
const LINK_STYLE = 5;
const MAX_ROWS = 5;
const MAX_BUTTONS = 5;
const MAX_COMPONENTS_V2 = 40;
const MAX_DISPLAYED_TEXT = 4000;
const SELECTS = new Set([3, 5, 6, 7, 8]);

interface Placed {
  component: Payload;
  path: (string | number)[];
}

/** Returns all components with their paths, including nested ones. */
export function flatten(components: readonly unknown[], base: (string | number)[] = ["components"]): Placed[] {
  return components.flatMap((raw, index) => {
    const component = raw as Payload;
    const path = [...base, index];
    const inside = ["component", "accessory"].flatMap((key) =>
      component[key] === undefined ? [] : flatten([component[key]], [...path, key]),
    );
    const children = component["components"];
    return [
      { component, path },
      ...inside,
      ...(Array.isArray(children) ? flatten(children, [...path, "components"]) : []),
    ];
  });
}

/** Discord counts code points, not UTF-16 units. */
export function lengthOf(text: string): number {
  return Array.from(text).length;
}

/** Returns the visible texts of components. Discord looks for mentions in them. */
export function textsOf(components: readonly unknown[]): string[] {
  return flatten(components)
    .filter(({ component }) => component["type"] === TEXT_DISPLAY)
    .map(({ component }) => textIn(component["content"]));
}

/** Returns the problems for which Discord would refuse these components in a message. */
export function findComponentProblems(components: readonly Payload[], isV2: boolean): FormProblem[] {
  const placed = flatten(components);
  return [...(isV2 ? findV2Problems(placed) : findLayoutProblems(components)), ...findIdProblems(placed)];
}

function findV2Problems(placed: readonly Placed[]): FormProblem[] {
  const text = textsOf(placed.map(({ component }) => ({ ...component, components: undefined })));
  const length = text.reduce((sum, part) => sum + lengthOf(part), 0);
  const problems: FormProblem[] = [];
  if (placed.length > MAX_COMPONENTS_V2) problems.push(badLength(["components"], `at most ${MAX_COMPONENTS_V2}`));
  if (length > MAX_DISPLAYED_TEXT) {
    const message = `The total text of all components exceeds ${MAX_DISPLAYED_TEXT}`;
    problems.push({ path: ["components"], code: "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", message });
  }
  return problems;
}

function findLayoutProblems(rows: readonly Payload[]): FormProblem[] {
  const problems: FormProblem[] = [];
  if (rows.length > MAX_ROWS) problems.push(badLength(["components"], `at most ${MAX_ROWS} rows`));
  for (const [index, row] of rows.entries()) {
    const children = Array.isArray(row["components"]) ? row["components"] : [];
    const path = ["components", index];
    if (row["type"] !== ROW) {
      const message = 'Value of field "type" must be one of (1,).';
      problems.push({ path: [...path, "type"], code: "UNION_TYPE_CHOICES", message });
    } else if (children.length < 1 || children.length > MAX_BUTTONS) {
      problems.push(badLength([...path, "components"], `between 1 and ${MAX_BUTTONS}`));
    }
  }
  return problems;
}

function findIdProblems(placed: readonly Placed[]): FormProblem[] {
  const seen = new Set<string>();
  const problems: FormProblem[] = [];
  for (const { component, path } of placed) {
    const { type, style, url, label, custom_id: id } = component;
    if (type === BUTTON && textIn(label).length > 80) problems.push(badLength([...path, "label"], "at most 80"));
    if (type === BUTTON && style === LINK_STYLE) {
      if (typeof url !== "string") problems.push(required([...path, "url"]));
      continue;
    }
    if (type !== BUTTON && !SELECTS.has(Number(type))) continue;
    if (typeof id !== "string") problems.push(required([...path, "custom_id"]));
    else if (id.length < 1 || id.length > 100) problems.push(badLength([...path, "custom_id"], "between 1 and 100"));
    else if (seen.has(id)) {
      const message = "Component custom id cannot be duplicated";
      problems.push({ path: [...path, "custom_id"], code: "COMPONENT_CUSTOM_ID_DUPLICATED", message });
    } else seen.add(id);
  }
  return problems;
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function badLength(path: (string | number)[], bounds: string): FormProblem {
  return { path, code: "BASE_TYPE_BAD_LENGTH", message: `Must be ${bounds} in length.` };
}

function required(path: (string | number)[]): FormProblem {
  return { path, code: "BASE_TYPE_REQUIRED", message: "This field is required" };
}
