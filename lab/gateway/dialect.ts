// A vendor's dialect: data and pure functions that refuse requests and shape answers.
import { z } from "zod";

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish();

const message = z.looseObject({
  role: z.string(),
  content,
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
  tool_call_id: z.string().nullish(),
});

const tool = z.looseObject({
  type: z.string(),
  function: z.looseObject({ name: z.string(), parameters: z.looseObject({}).nullish() }),
});

/** The fields that every vendor reads. Other fields stay in the request. */
export const chatRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z.array(tool).nullish(),
});

export type ChatRequest = z.infer<typeof chatRequest>;
export type Message = ChatRequest["messages"][number];

/** An error response with the vendor's real status and body. */
export interface Refusal {
  status: number;
  body: unknown;
  headers?: Readonly<Record<string, string>>;
}

/** Returns a refusal if the request breaks one of the vendor's rules. Pure. */
export type Rule = (request: ChatRequest) => Refusal | undefined;

/** Returns the body of a common error, such as a wrong key or an unknown model. */
export type ErrorBody = (status: number, message: string, code: string) => unknown;

export interface Call {
  id: string;
  name: string;
  arguments: string;
}

/** A complete answer before it is streamed. */
export interface Answer {
  id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** The model's reasoning; "" without any. */
  thought: string;
  content: string;
  calls: Call[];
  /** Data URLs. */
  pictures: string[];
  finish: string;
  usage: Usage;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

export type Fields = Record<string, unknown>;

/** An event of a stream, or a fault of its connection. */
export type Sent =
  | { type: "chunk"; delta: Fields; finish?: string; fields?: Fields; choice?: Fields }
  /** Raw text, such as a comment or an error event. */
  | { type: "raw"; text: string }
  | { type: "wait"; forMs: number }
  /** Closes the connection in the middle of the answer. */
  | { type: "cut" };

/** Fields that dialects and traits share. */
export interface Accent {
  rules?: readonly Rule[];
  toAnswer?(answer: Answer, request: ChatRequest): Answer;
  toStream?(stream: readonly Sent[], answer: Answer): readonly Sent[];
}

export interface Dialect extends Accent {
  title: string;
  /** The base URL in the vendor's documentation. The server serves the path of this URL. */
  address: string;
  chatModel: string;
  /** Absent if the vendor has no image model. */
  imageModel?: string;
  /** How clients request images; absent without an image model. */
  draws?: Drawing;
  hasModelList: boolean;
  errorBody: ErrorBody;
  /** Response for an unknown path, such as "POST /v1/x". Default: FastAPI's. */
  unknownPath?(path: string): Refusal;
  /** Response if the account has no credit; absent if the vendor has no prepaid accounts. */
  noCredit?: Refusal;
  /**
   * Returns the delta for a piece of reasoning, and the delta after the last one. Absent if the model does not reason.
   */
  thinking?: { piece(text: string): Fields; end?(whole: string): Fields };
  callFields?(call: Call, index: number): Fields;
  /** Fields in the last chunk, for vendors that always report usage. */
  usageFields?(usage: Usage): Fields;
  /**
   * Response to `web_search_options`: a search with cited pages, or a refusal. Default: the vendor ignores the field.
   */
  webSearch?: "cites" | "refuses";
  /** How an interrupted answer ends. Default: the connection closes. */
  breaksOff?: readonly Sent[];
  /**
   * Conversations that cannot work with this vendor, each with the reason and a pattern for the sentence that users
   * must read.
   */
  explained?: Readonly<Partial<Record<string, { because: string; says: RegExp }>>>;
}

export interface Drawing {
  /** `images` means `/images/generations` and `/images/edits`; `chat` means that images come in a chat answer. */
  by: "images" | "chat";
  /** Checks the fields of an image request and the types of its reference images. */
  refuse?(fields: Readonly<Fields>, types: readonly string[]): Refusal | undefined;
  /** True if the vendor returns URLs by default, instead of base64. */
  linksByDefault?: boolean;
  /** True if the host also serves Google's `generateContent`, which accepts the key only in `x-goog-api-key`. */
  hasGenerateContent?: boolean;
}

/** OpenAI's error object, which most vendors use. */
export const openAiError: ErrorBody = (status, message, code) => ({
  error: { message, type: status === 401 ? "authentication_error" : "invalid_request_error", param: null, code },
});

export function refuse(status: number, message: string, fields: Fields = {}): Refusal {
  const error = { message, type: "invalid_request_error", param: null, code: null, ...fields };
  return { status, body: { error } };
}

/** Refuses a request if `isRefused` returns true for one of its fields. */
export function refuseFields(
  isRefused: (name: string, value: unknown) => boolean,
  toRefusal: (name: string) => Refusal,
): Rule {
  return (request) => {
    const found = Object.entries(request).find(([name, value]) => value !== undefined && isRefused(name, value));
    return found && toRefusal(found[0]);
  };
}

/** Refuses a request if `isRefused` returns true for one of its messages. */
export function refuseMessages(
  isRefused: (message: Message, index: number, messages: readonly Message[]) => boolean,
  toRefusal: (index: number, message: Message) => Refusal,
): Rule {
  return ({ messages }) => {
    const index = messages.findIndex(isRefused);
    const message = messages[index];
    return message && toRefusal(index, message);
  };
}

export function refuseField(field: string, refusal: Refusal): Rule {
  return refuseFields(
    (name) => name === field,
    () => refusal,
  );
}

/** The messages of the current turn: those after the last user message. */
export function turnOf(messages: readonly Message[]): readonly Message[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
}

export function callsOf({ tool_calls: calls }: Message): NonNullable<Message["tool_calls"]> {
  return calls ?? [];
}

export function hasPicture({ content }: Message): boolean {
  return Array.isArray(content) && content.some(({ type }) => type === "image_url");
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a fake signature that fits only this text. */
export function sign(text: string): string {
  return `sig-${Buffer.from(text).toString("base64url").slice(-24)}-${text.length}`;
}

/**
 * True if user and assistant messages alternate and a user message comes first. Skips system messages and messages for
 * which `isLeftOut` returns true.
 */
export function alternates(
  messages: readonly Message[],
  isLeftOut: (message: Message) => boolean = () => false,
): boolean {
  const spoken = messages.filter((message) => message.role !== "system" && !isLeftOut(message));
  return spoken.every(({ role }, index) => (role === "user") === (index % 2 === 0));
}

/**
 * True for a tool call or a tool result. Templates with tool support ignore both when they check the order of roles.
 */
export function isToolTalk(message: Message): boolean {
  return message.role === "tool" || callsOf(message).length > 0;
}

/** Lists the properties in all tools' schemas, with their paths. */
export function propertiesOf({
  tools,
}: ChatRequest): Array<{ tool: string; toolIndex: number; path: string; schema: Fields }> {
  return (tools ?? []).flatMap(({ function: { name, parameters } }, toolIndex) =>
    walk(parameters ?? {}, "parameters").map((found) => ({ tool: name, toolIndex, ...found })),
  );
}

function walk(schema: Fields, path: string): Array<{ path: string; schema: Fields }> {
  const properties = isRecord(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  const inner = properties.flatMap(([name, value]) =>
    isRecord(value) ? [{ path: `${path}.${name}`, schema: value }] : [],
  );
  const items = isRecord(schema["items"]) ? [{ path: `${path}[]`, schema: schema["items"] }] : [];
  return [...inner, ...items].flatMap((found) => [found, ...walk(found.schema, found.path)]);
}

type Explained = NonNullable<Dialect["explained"]>;

export const DRAWS_NOTHING: Explained = Object.fromEntries(
  ["picture out", "picture changed"].map((conversation) => [
    conversation,
    { because: "the vendor has no image model", says: /images?/i },
  ]),
);

export const SEES_NOTHING: Explained = {
  "picture in": { because: "the model has no image input", says: /can.t see images/i },
  "tool with picture": { because: "the model has no image input", says: /can.t see images/i },
};

export const CALLS_NOTHING: Explained = Object.fromEntries(
  ["two tools", "tool with picture", "nine rounds", "approved tool"].map((conversation) => [
    conversation,
    { because: "the model has no tools", says: /tools/i },
  ]),
);

export const FIXED_TEMPERATURE: Explained = {
  temperature: { because: "the model has a fixed temperature", says: /temperature/i },
};
