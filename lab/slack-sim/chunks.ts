import type { Arguments } from "./arguments.ts";
import { checkBlocks, MAX_MARKDOWN_CHARS } from "./content-rules.ts";
import { invalidArguments, SlackRefusal } from "./refusal.ts";
import { listOf, textOf } from "./shown-text.ts";
import type { Json, Stream } from "./world.ts";

/** The additions of one call to a streamed message. */
export interface Addition {
  text: string;
  tasks: Json[];
  planTitle: string | undefined;
  blocks: Json[];
}

type Tasks = Stream["tasks"];

const TYPES = ["markdown_text", "task_update", "plan_update", "blocks"];
const STATUSES = ["pending", "in_progress", "complete", "error"];
/** Maximum length of a task's title, id or other text. */
const MAX_TASK_CHARS = 256;
/** Slack appends to these fields of a task and replaces all others. */
const GROWING = ["details", "output"];

/** Reads the text or chunks of a call. Throws if Slack would refuse them. */
export function readAddition(args: Arguments): Addition {
  const markdown = args.text("markdown_text");
  const chunks = args.list("chunks");
  if (markdown !== undefined && chunks.length > 0) {
    throw invalidArguments("markdown_text and chunks exclude each other");
  }
  if (!chunks.every(isChunk)) throw new SlackRefusal("invalid_chunks");
  const of = (type: string) => chunks.filter((chunk) => chunk["type"] === type);
  const text = [markdown ?? "", ...of("markdown_text").map((chunk) => textOf(chunk["text"]))].join("");
  if (text.length > MAX_MARKDOWN_CHARS) throw new SlackRefusal("msg_too_long");
  const blocks = of("blocks").flatMap((chunk) => listOf(chunk["blocks"]));
  checkBlocks(blocks);
  const planTitle = of("plan_update").map((chunk) => textOf(chunk["title"]));
  return { text, tasks: of("task_update"), blocks, planTitle: planTitle.at(-1) };
}

export function isEmpty({ text, tasks, planTitle, blocks }: Addition): boolean {
  return text === "" && tasks.length === 0 && planTitle === undefined && blocks.length === 0;
}

/** Returns a stream's tasks after a call. Pure. */
export function applyTasks(before: Tasks, added: readonly Json[]): Tasks {
  const tasks = new Map(before);
  for (const task of added) {
    const known = tasks.get(String(task["id"])) ?? {};
    const grown = GROWING.filter((name) => name in known || name in task).map((name) => [
      name,
      textOf(known[name]) + textOf(task[name]),
    ]);
    tasks.set(String(task["id"]), { ...known, ...task, ...Object.fromEntries(grown) });
  }
  return tasks;
}

/**
 * Returns how many bytes of a streamed message task cards use. Everything except the title and the sources counts
 * twice.
 */
export function weighTasks(tasks: Tasks): number {
  const bytes = (value: unknown) => Buffer.byteLength(textOf(value));
  const weigh = (task: Json) => {
    const sources = listOf(task["sources"]).reduce((sum, { url, text }) => sum + bytes(url) + bytes(text), 0);
    return bytes(task["title"]) + sources + 2 * GROWING.reduce((sum, name) => sum + bytes(task[name]), 0);
  };
  return [...tasks.values()].reduce((sum, task) => sum + weigh(task), 0);
}

export function openTitles(tasks: Tasks): string[] {
  const open = [...tasks.values()].filter(({ status }) => status === "pending" || status === "in_progress");
  return open.map(({ title }) => textOf(title));
}

/** Formats a stream's task cards as in its message. Empty without tasks. */
export function tasksToWire({ tasks, planTitle = "Thinking" }: Stream): Json[] {
  if (tasks.size === 0) return [];
  const cards = [...tasks.values()].map(({ id, title, status, sources }) => {
    return { type: "task_card", task_id: id, title, status, ...(sources !== undefined && { sources }) };
  });
  return [{ type: "plan", title: planTitle, tasks: cards }];
}

function isChunk(chunk: Json): boolean {
  const { type, text, title, blocks } = chunk;
  if (!TYPES.includes(String(type))) return false;
  if (type === "markdown_text") return typeof text === "string" && text !== "";
  if (type === "plan_update") return isWords(title);
  return type === "blocks" ? Array.isArray(blocks) : isTask(chunk);
}

function isTask({ id, title, status, details = "-", output = "-", sources = [] }: Json): boolean {
  const isNamed = isWords(id) && isWords(title) && STATUSES.includes(String(status));
  const areSources = Array.isArray(sources) && listOf(sources).every(({ url, text }) => isWords(text) && isWords(url));
  return isNamed && isWords(details) && isWords(output) && areSources;
}

function isWords(value: unknown): boolean {
  return typeof value === "string" && value !== "" && value.length <= MAX_TASK_CHARS;
}
