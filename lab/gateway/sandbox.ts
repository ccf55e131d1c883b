// Sends accepted requests to the sandbox gateway.
import { z } from "zod";
import { type Answer, type ChatRequest, isRecord, type Message } from "./dialect.ts";

const KEY = "sk-sandbox-all";

const completion = z.object({
  id: z.string(),
  created: z.number(),
  choices: z.tuple([
    z.object({
      message: z.object({
        content: z.string().nullish(),
        tool_calls: z
          .array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }))
          .nullish(),
      }),
      finish_reason: z.string(),
    }),
  ]),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number(), total_tokens: z.number() }),
});

const drawing = z.object({
  candidates: z.tuple([
    z.object({
      content: z.object({
        parts: z.array(
          z.object({ text: z.string().optional(), inlineData: z.object({ data: z.string() }).optional() }),
        ),
      }),
    }),
  ]),
});

/** A request for Google's `generateContent`. */
export const generateRequest = z.object({
  contents: z.array(
    z.object({
      parts: z.array(
        z.object({
          text: z.string().optional(),
          inlineData: z.object({ mimeType: z.string(), data: z.string() }).optional(),
        }),
      ),
    }),
  ),
  generationConfig: z
    .object({
      imageConfig: z.object({ aspectRatio: z.string().optional(), imageSize: z.string().optional() }).optional(),
    })
    .optional(),
});

const failure = z.object({ error: z.object({ message: z.string(), code: z.string() }) });

/** Thrown if the sandbox refuses a request that passed the dialect's rules. */
export class SandboxError extends Error {
  override readonly name = "SandboxError";
  readonly status: number;
  readonly code: string;

  constructor(status: number, message: string, code: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Picture {
  mimeType: string;
  base64: string;
}

/** Asks the sandbox's chat model. Adds reasoning if the dialect's model `thinks`. */
export async function converse(url: string, request: ChatRequest, thinks: boolean): Promise<Answer> {
  const body = await post(`${url}/v1/chat/completions`, toSandboxRequest(request));
  const { id, created, choices, usage } = completion.parse(body);
  const [{ message, finish_reason: finish }] = choices;
  return {
    id,
    created,
    model: request.model,
    thought: thinks ? thinkAbout(request) : "",
    content: message.content ?? "",
    calls: (message.tool_calls ?? []).map((call) => ({ id: call.id, ...call.function })),
    pictures: [],
    finish,
    usage,
  };
}

/** Invents the reasoning before an answer. The same question always gets the same reasoning. */
export function thinkAbout(request: ChatRequest): string {
  const asked = readWish(request).prompt.replace(/\s+/g, " ").trim().slice(0, 80);
  return `The user wrote: "${asked}". First I look for what the words want of me.\n\nThen I weigh possible answers and keep the shortest.`;
}

/** Requests a PNG from the sandbox. */
export async function draw(
  url: string,
  { prompt, references, aspectRatio, imageSize }: Drawn,
): Promise<{ text: string; base64: string }> {
  const inline = references.map(({ mimeType, base64 }) => ({ inlineData: { mimeType, data: base64 } }));
  const answer = await post(`${url}/v1beta/models/sandbox-image:generateContent`, {
    contents: [{ parts: [{ text: prompt }, ...inline] }],
    generationConfig: { responseModalities: ["TEXT", "IMAGE"], imageConfig: { aspectRatio, imageSize } },
  });
  const [{ content }] = drawing.parse(answer).candidates;
  const text = content.parts.map((part) => part.text ?? "").join("");
  return { text, base64: content.parts.find((part) => part.inlineData !== undefined)?.inlineData?.data ?? "" };
}

export interface Drawn {
  prompt: string;
  references: readonly Picture[];
  aspectRatio?: string | undefined;
  imageSize?: string | undefined;
}

/** Keeps only fields that the sandbox knows. The dialect's rules have checked the others. */
function toSandboxRequest(request: ChatRequest): object {
  const { messages, tools, max_tokens, max_completion_tokens, stop, response_format, tool_choice } = request;
  const offered = tools?.length ? { tools: tools.map(toSandboxTool), tool_choice } : {};
  return {
    model: "sandbox-chat",
    messages: messages.map(toSandboxMessage),
    ...offered,
    max_tokens: max_tokens ?? max_completion_tokens,
    stop,
    response_format,
  };
}

function toSandboxTool({
  function: { name, description, parameters },
}: NonNullable<ChatRequest["tools"]>[number]): object {
  return { type: "function", function: { name, description, parameters } };
}

function toSandboxMessage({ role, content, name, tool_calls: calls, tool_call_id }: Message): object {
  const text = content ?? "";
  if (role === "tool") return { role, content: text, tool_call_id };
  if (role === "assistant" && calls?.length) {
    const made = calls.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.function.name, arguments: call.function.arguments },
    }));
    return { role, content: text, tool_calls: made };
  }
  return { role: role === "developer" ? "system" : role, content: text, name };
}

async function post(url: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const answer: unknown = await response.json();
  if (response.ok) return answer;
  const { error } = failure.parse(answer);
  throw new SandboxError(response.status, error.message, error.code);
}

/** Returns the prompt and the reference images of the last user message. */
export function readWish({ messages }: ChatRequest): Drawn {
  const content = messages.findLast(({ role }) => role === "user")?.content ?? "";
  if (typeof content === "string") return { prompt: content, references: [] };
  const prompt = content.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
  const references = content.flatMap(({ image_url: image }) => {
    const url = isRecord(image) && typeof image["url"] === "string" ? image["url"] : "";
    const [, mimeType, base64] = /^data:([^;,]+);base64,(.+)$/s.exec(url) ?? [];
    return mimeType !== undefined && base64 !== undefined ? [{ mimeType, base64 }] : [];
  });
  return { prompt, references };
}
