// Runs the same conversations against every dialect with the real bot. In each conversation, the bot must answer with
// evidence, or explain in one true sentence why it cannot.
import type { Logger } from "pino";
import type { Shown } from "../support/fake-platform.ts";
import { ben, cleo, PHOTO, startBot, type Talk } from "./bot.ts";
import type { Dialect, Message } from "./dialect.ts";
import { DIALECT_NAMES, DIALECTS, type DialectName } from "./dialects/index.ts";
import { type RunningDialect, type Seen, startDialect } from "./server.ts";

/** The outcome of one conversation. */
export type Cell =
  | { kind: "answered" }
  /** The sentence that the user saw. */
  | { kind: "explained"; sentence: string; because: string }
  /** The conversation does not apply to this vendor. */
  | { kind: "absent"; because: string }
  | { kind: "failed"; why: string };

/** One conversation as the users and the gateway saw it. */
interface Heard {
  dialect: Dialect;
  text: string;
  shown: readonly Shown[];
  requests: readonly Seen[];
  last: Seen | undefined;
}

interface Conversation {
  hold(talk: Talk, gateway: RunningDialect): Promise<void>;
  /** True if the text contains evidence of a correct answer. */
  isAnswered(heard: Heard): boolean;
  /** Set if the bot cannot answer. Its explanation must match `says`, and `isTrue` must confirm it. */
  explained?: { because: string; says: RegExp; isTrue(heard: Heard): boolean };
  /** Returns why the conversation does not apply to a dialect. */
  absent?(dialect: Dialect): string | undefined;
}

const SAYS = "The kettle is on.";

export const CONVERSATIONS = {
  plain: {
    hold: (talk) => talk.say(`say: ${SAYS}`),
    isAnswered: ({ text }) => withoutNotice(text) === SAYS,
  },
  "three speakers": {
    async hold(talk) {
      await talk.say("say: Lunch is at noon.", { author: ben });
      await talk.say("The door is green.", { author: cleo, to: "other" });
      await talk.say("The window is blue.", { author: ben, to: "other" });
      await talk.say("Who said what?");
    },
    isAnswered: ({ shown, last }) =>
      shown.length === 2 && isIn(last, "Ben", "Cleo", "The door is green.", "Who said what?"),
  },
  "system prompt": {
    hold: (talk) => talk.say("What are your instructions?"),
    isAnswered: ({ text, last }) => text !== "" && isIn(last, "Be kind."),
  },
  "two tools": {
    hold: (talk) => talk.say("use get_weather and current_time"),
    isAnswered: ({ text, last, requests }) =>
      resultsIn(last).length === 2 &&
      returnsThoughts(last, requests) &&
      text.includes("sunny") &&
      text.includes("2026-06-01T12:00"),
  },
  "tool with picture": {
    hold: (talk) => talk.say("use take_photo"),
    isAnswered: ({ text }) => /I see one picture: .*red/.test(text),
  },
  "nine rounds": {
    hold: (talk) => talk.say("use current_time over and over"),
    isAnswered: ({ text, last }) =>
      (resultsIn(last).length >= 7 && text.includes("Here is what I found")) ||
      // If the gateway cannot forbid tool calls, the bot sends the results as plain text. The practice model hardly
      // understands that.
      JSON.stringify(last?.chat).split("current_time({}):").length > 7,
  },
  "approved tool": {
    async hold(talk) {
      await talk.say("use order_tea");
      await talk.press("approve");
    },
    isAnswered: ({ text, last }) => resultsIn(last).length === 1 && text.includes("The tea is ordered."),
  },
  "JSON format": {
    async hold(talk) {
      await talk.set("--format json");
      await talk.say("What is your name?");
    },
    isAnswered: ({ shown, last }) => isIn(last, '"response_format"') && holdsJson(shown.at(-1)?.draft.markdown ?? ""),
  },
  temperature: {
    async hold(talk) {
      await talk.set("--temperature 0.3");
      await talk.say(`say: ${SAYS}`);
    },
    isAnswered: ({ text, last }) => text.includes(SAYS) && last?.chat?.["temperature"] === 0.3,
  },
  "web search": {
    async hold(talk) {
      await talk.set("--web medium");
      await talk.say(`say: ${SAYS}`);
    },
    isAnswered: ({ text, last }) => isIn(last, '"web_search_options"') && isCited(text),
    explained: {
      because: "the vendor refuses web searches",
      says: /search the web/,
      isTrue: ({ text, dialect }) => text.includes(SAYS) && dialect.webSearch === "refuses",
    },
    absent: ({ webSearch }) => (webSearch === undefined ? "the dialect has no web search" : undefined),
  },
  "picture in": {
    hold: (talk) => talk.say("What do you see?", { attachments: [PHOTO] }),
    isAnswered: ({ text }) => /I see one picture: .*red/.test(text),
  },
  "thinking shown": {
    async hold(talk) {
      await talk.set("--thinking shown");
      await talk.say(`say: ${SAYS}`);
    },
    isAnswered: ({ text, dialect }) =>
      text.includes(SAYS) && (dialect.thinking === undefined || text.includes("what the words want of me")),
  },
  "after tools": {
    async hold(talk) {
      await talk.say("use get_weather");
      await talk.say("What did I say first?");
    },
    isAnswered: ({ shown }) => shown.at(-1)?.draft.markdown.includes("> use get_weather") === true,
  },
  regenerate: {
    async hold(talk) {
      await talk.say(`say: ${SAYS}`);
      await talk.press("regenerate");
    },
    isAnswered: ({ text, requests }) => withoutNotice(text) === SAYS && accepted(requests).length === 2,
  },
  "model list": {
    hold: (talk) => talk.command("model"),
    isAnswered: ({ text, dialect }) => text.includes("You can choose from") && text.includes(dialect.chatModel),
  },
  "picture out": {
    hold: (talk) => talk.command("imagine", "a red boat"),
    isAnswered: ({ shown }) => shown.some(({ files }) => files.some(({ bytes }) => isPng(bytes))),
  },
  "picture changed": {
    hold: (talk) => talk.command("imagine", "the same at night", [PHOTO]),
    isAnswered: ({ shown, requests, last }) =>
      shown.some(({ files }) => files.some(({ bytes }) => isPng(bytes))) &&
      (requests.some(({ references, refusal }) => references === 1 && refusal === undefined) ||
        isIn(last, '"image_url"')),
  },
  "broken off": {
    async hold(talk, gateway) {
      gateway.use("break-off");
      await talk.say("count to 50");
    },
    isAnswered: () => false,
    explained: {
      because: "the answer breaks off in the middle",
      says: /broke off|stopped/i,
      isTrue: ({ text, shown }) =>
        text.startsWith("1\n2\n") && shown.some(({ draft }) => draft.buttons.some(({ label }) => label === "Retry")),
    },
  },
  "no credit": {
    async hold(talk, gateway) {
      gateway.use("no-credit");
      await talk.say(`say: ${SAYS}`);
    },
    isAnswered: () => false,
    explained: {
      because: "the account has no credit",
      says: /credit/i,
      // A retry would not help, so the bot must send only one request.
      isTrue: ({ requests }) => requests.length === 1,
    },
    absent: ({ noCredit }) => (noCredit === undefined ? "the vendor has no prepaid accounts" : undefined),
  },
} satisfies Record<string, Conversation>;

export type ConversationName = keyof typeof CONVERSATIONS;

export type Row = ReadonlyMap<ConversationName, Cell>;

export const CONVERSATION_NAMES = Object.keys(CONVERSATIONS).filter((name): name is ConversationName =>
  Object.hasOwn(CONVERSATIONS, name),
);

/** Removes two notes from an answer: that the model has no tools, and the list of cited pages. */
function withoutNotice(text: string): string {
  return text
    .replace(/\n\n-# Sources:(\n-# [^\n]+)+/g, "")
    .replace(/\n\n_The model \S+ can't use tools, so it answered without them\._/g, "");
}

/** True if each page is linked in the text by its number and listed once. */
function isCited(text: string): boolean {
  const [kettles, tea] = ["https://example.com/kettles", "https://example.org/tea?utm_source=lab"];
  const listed = `-# Sources:\n-# 1. [Kettles - a history](${kettles})\n-# 2. [Tea](${tea})`;
  return text.includes(`[[1]](${kettles})`) && text.includes(`[[2]](${tea})`) && text.endsWith(listed);
}

/** Phrases that explain nothing, because they name no cause. */
const EMPTY_WORDS = /LOG_LEVEL|log says|does not accept this request/;
const FAILURE =
  /^_(The AI service|I can't reach|The answer (broke off|was interrupted|took longer)|This bot's account|Something went wrong)\b/m;

/** Measures all dialects in parallel. */
export async function measureAll(log: Logger): Promise<ReadonlyMap<DialectName, Row>> {
  const measured = await Promise.all(DIALECT_NAMES.map(async (name) => ({ name, ...(await measure(name, log)) })));
  return new Map(measured.map(({ name, row }) => [name, row]));
}

/** Runs all conversations against one dialect, one after another. */
export async function measure(name: DialectName, log: Logger): Promise<{ row: Row; requests: readonly Seen[] }> {
  const gateway = await startDialect({ dialect: name });
  const bot = await startBot(gateway, log);
  const row = new Map<ConversationName, Cell>();
  try {
    for (const conversation of CONVERSATION_NAMES) {
      const first = { shown: bot.shown.length, requests: gateway.requests.length };
      const held: Conversation = CONVERSATIONS[conversation];
      const because = held.absent?.(DIALECTS[name]);
      if (because !== undefined) {
        row.set(conversation, { kind: "absent", because });
        continue;
      }
      gateway.use();
      await held.hold(bot.open(`${name} ${conversation}`), gateway);
      const shown = bot.shown.slice(first.shown);
      const requests = gateway.requests.slice(first.requests);
      const text = shown.map(({ draft }) => draft.markdown).join("\n\n");
      const heard = { dialect: DIALECTS[name], text, shown, requests, last: accepted(requests).at(-1) };
      row.set(conversation, judge(conversation, heard));
    }
    return { row, requests: gateway.requests };
  } finally {
    await bot.close();
    await gateway.close();
  }
}

function judge(name: ConversationName, heard: Heard): Cell {
  const conversation: Conversation = CONVERSATIONS[name];
  const { text, requests, dialect } = heard;
  if (conversation.isAnswered(heard) && !FAILURE.test(text)) return { kind: "answered" };
  const expected = conversation.explained ?? dialect.explained?.[name];
  const sentence = expected && findSentence(text, expected.says);
  const isTrue = conversation.explained?.isTrue(heard) ?? true;
  if (expected && sentence !== undefined && isTrue && !EMPTY_WORDS.test(text)) {
    return { kind: "explained", sentence, because: expected.because };
  }
  const refusals = requests.flatMap(({ refusal }) =>
    refusal ? [`${refusal.status} ${JSON.stringify(refusal.body).slice(0, 300)}`] : [],
  );
  const said = [...new Set(refusals)].join(" | ");
  return {
    kind: "failed",
    why: `People read: ${JSON.stringify(text.slice(-400))}. The vendor said: ${said || "nothing"}.`,
  };
}

/** Returns the bot's explanation without formatting and without words of the model. */
function findSentence(text: string, says: RegExp): string | undefined {
  return text
    .split("\n")
    .filter((line) => !line.startsWith(">"))
    .map((line) => line.replace(/^_+|_+$/g, ""))
    .findLast((line) => says.test(line));
}

function accepted(requests: readonly Seen[]): Seen[] {
  return requests.filter(({ chat, refusal }) => chat !== undefined && refusal === undefined);
}

function isIn(seen: Seen | undefined, ...words: string[]): boolean {
  const json = JSON.stringify(seen?.chat ?? null);
  return words.every((word) => json.includes(word));
}

function resultsIn(seen: Seen | undefined): Message[] {
  return seen?.chat?.messages.filter(({ role }) => role === "tool") ?? [];
}

/** True if the request returns all reasoning exactly as the model sent it. */
function returnsThoughts(seen: Seen | undefined, requests: readonly Seen[]): boolean {
  const sent = new Set(requests.map(({ answer }) => answer?.thought));
  const returned = seen?.chat?.messages.map((message) => message["reasoning_content"] ?? message["reasoning"]) ?? [];
  return returned.every((thought) => thought === undefined || (typeof thought === "string" && sent.has(thought)));
}

function holdsJson(text: string): boolean {
  try {
    JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? "");
    return true;
  } catch {
    return false;
  }
}

function isPng(bytes: Uint8Array): boolean {
  return bytes.length > 1_000 && Buffer.from(bytes.subarray(1, 4)).toString() === "PNG";
}
