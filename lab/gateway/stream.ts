import { type Answer, type ChatRequest, type Dialect, isRecord, type Sent } from "./dialect.ts";

/** Characters per delta of text. */
const PIECE_CHARS = 12;

/** Streams an answer in a dialect. Pure. */
export function toStream(answer: Answer, dialect: Dialect, request: ChatRequest): Sent[] {
  const { thinking, callFields, usageFields } = dialect;
  const thoughts =
    thinking && answer.thought !== "" ? split(answer.thought).map((text) => chunk(thinking.piece(text))) : [];
  const end = thoughts.length > 0 && thinking?.end ? [chunk(thinking.end(answer.thought))] : [];
  const images = answer.pictures.map((url, index) => ({ type: "image_url", image_url: { url }, index }));
  const calls = answer.calls.flatMap((call, index) => {
    const { id, name, arguments: json } = call;
    const head = { index, id, type: "function", ...callFields?.(call, index), function: { name, arguments: "" } };
    return [
      chunk({ tool_calls: [head] }),
      ...split(json).map((text) => chunk({ tool_calls: [{ index, function: { arguments: text } }] })),
    ];
  });
  const isAsked = request.stream_options?.include_usage === true;
  const usage: Sent[] = isAsked ? [chunk({}, { fields: { choices: [], usage: answer.usage } })] : [];
  const unasked = usageFields && { fields: usageFields(answer.usage) };
  return [
    chunk({ role: "assistant", content: "" }),
    ...thoughts,
    ...end,
    ...split(answer.content).map((text) => chunk({ content: text })),
    ...(images.length > 0 ? [chunk({ content: "", images })] : []),
    ...calls,
    chunk({}, { finish: answer.finish, ...unasked }),
    ...usage,
    { type: "raw", text: "data: [DONE]\n\n" },
  ];
}

function chunk(delta: Record<string, unknown>, more: object = {}): Sent {
  return { type: "chunk", delta, ...more };
}

/** Splits a text into the deltas of a stream. */
export function split(text: string): string[] {
  return text.match(new RegExp(`.{1,${PIECE_CHARS}}`, "gsu")) ?? [];
}

export function toEvent(sent: Extract<Sent, { type: "chunk" }>, { id, created, model }: Answer): string {
  const { delta, finish = null, fields, choice } = sent;
  const choices = [{ index: 0, delta, finish_reason: finish, ...choice }];
  return `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created, model, choices, ...fields })}\n\n`;
}

/** Returns the response body for a request without `stream`. */
export function toWhole(stream: readonly Sent[], answer: Answer): object {
  const { id, created, model, finish, usage } = answer;
  const message = stream.reduce<unknown>((sum, sent) => (sent.type === "chunk" ? merge(sum, sent.delta) : sum), {});
  const choices = [{ index: 0, message, finish_reason: finish }];
  const fields = stream.reduce((sum, sent) => (sent.type === "chunk" ? { ...sum, ...sent.fields } : sum), {});
  return { ...fields, id, object: "chat.completion", created, model, choices, usage };
}

/** Fields that every delta repeats in full, so they must not be concatenated. */
const REPEATED: ReadonlySet<string> = new Set(["type", "id", "role", "format"]);

/** Merges two deltas: concatenates strings, merges lists by index. Pure. */
export function merge(one: unknown, other: unknown): unknown {
  if (typeof one === "string" && typeof other === "string") return one + other;
  if (Array.isArray(one) && Array.isArray(other)) {
    return Array.from({ length: Math.max(one.length, other.length) }, (_, at) => merge(one[at], other[at]));
  }
  if (!isRecord(one) || !isRecord(other)) return other ?? one;
  const entries = Object.entries(other).map(([key, value]) => [
    key,
    REPEATED.has(key) ? (one[key] ?? value) : merge(one[key], value),
  ]);
  return { ...one, ...Object.fromEntries(entries) };
}

/** Returns the stream up to the middle of its text. */
export function firstHalf(stream: readonly Sent[]): readonly Sent[] {
  const texts = [...stream.keys()].filter((at) => {
    const sent = stream[at];
    return sent?.type === "chunk" && typeof sent.delta["content"] === "string" && sent.delta["content"] !== "";
  });
  return stream.slice(0, (texts[Math.floor(texts.length / 2)] ?? 0) + 1);
}
