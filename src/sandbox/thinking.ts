/** The ways in which servers send what a model thinks before it answers, each with what it does. */
export const DIALECTS = {
  reasoning_content: "in `reasoning_content`, beside a `content` that is null",
  reasoning: "in `reasoning`, and once more in `reasoning_details`",
  reasoning_details: "in `reasoning_details` alone, as a summary",
  hidden: "in `reasoning_details` alone, encrypted: only that it thinks is seen",
  parts: "in parts of `content`, as text beside it",
  think: "in the text itself, as `<think>…</think>`",
  thinking: "in the text itself, as `<thinking>…</thinking>`",
  reasoning_tag: "in the text itself, as `<reasoning>…</reasoning>`",
} as const satisfies Record<string, string>;

export type Dialect = keyof typeof DIALECTS;

const TAGS: Partial<Record<Dialect, string>> = { think: "think", thinking: "thinking", reasoning_tag: "reasoning" };

export interface Thought {
  dialect: Dialect;
  text: string;
}

export function isDialect(name: string): name is Dialect {
  return Object.hasOwn(DIALECTS, name);
}

/** The same question always makes the model think the same. */
export function thinkAbout(question: string, dialect: Dialect): Thought {
  const asked = question.replace(/\s+/g, " ").trim().slice(0, 80);
  const text = `I am asked: "${asked}". First I look for what the words want of me.\n\nThen I weigh what I could say, one after the other, and drop what nobody asked for. What is left is the answer.`;
  return { dialect, text };
}

/** The fields of a message, or of a delta, with a part of what is thought; undefined where it stands in the text. */
export function toFields({ dialect, text }: Thought): object | undefined {
  switch (dialect) {
    case "reasoning_content":
      return { content: null, reasoning_content: text };
    case "reasoning":
      return { content: "", reasoning: text, reasoning_details: [{ type: "reasoning.text", text, index: 0 }] };
    case "reasoning_details":
      return { content: "", reasoning_details: [{ type: "reasoning.summary", summary: text, index: 0 }] };
    case "hidden":
      return { content: "", reasoning_details: [{ type: "reasoning.encrypted", data: btoa(String(text.length)) }] };
    case "parts":
      return { content: [{ type: "thinking", thinking: [{ type: "text", text }] }] };
    case "think":
    case "thinking":
    case "reasoning_tag":
    default:
      return undefined;
  }
}

/** The fields of a whole message, with its text beside what is thought. */
export function toWholeFields(thinking: Thought, content: string): object {
  const fields = toFields(thinking) ?? {};
  if (thinking.dialect !== "parts") return { ...fields, content };
  const parts = "content" in fields && Array.isArray(fields.content) ? fields.content : [];
  return { content: [...parts, { type: "text", text: content }] };
}

/** The text of an answer with what was thought in tags before it; the text alone in the other dialects. */
export function withTags(content: string, thinking: Thought | undefined): string {
  const tag = thinking && TAGS[thinking.dialect];
  return tag === undefined ? content : `<${tag}>\n${thinking?.text}\n</${tag}>\n\n${content}`;
}

/** The list of dialects as Markdown, for a person who asks in the chat. */
export function describeDialects(): string {
  const rows = Object.entries(DIALECTS).map(([name, way]) => `- \`${name}\` ${way}`);
  return ["I can think before I answer. Write `sandbox thinking: NAME` before your question:", rows.join("\n")].join(
    "\n\n",
  );
}
