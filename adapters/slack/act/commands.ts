import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { CommandEvent, MessageEvent } from "../../../src/port/events.ts";
import { truncate } from "../../../src/text/truncate.ts";
import type { Workspace } from "../api/workspaces.ts";
import { isAbsence, isMember, NOT_HERE } from "../hear/access.ts";
import { unescapeMarkup } from "../hear/wording.ts";
import { toMessageId } from "../ids.ts";
import { escapeMarkup } from "../write/markdown.ts";
import type { HandlerResult } from "./acknowledgement.ts";
import { section } from "./forms.ts";
import type { CommandPayload } from "./payloads.ts";
import { PERSONA } from "./persona-form.ts";
import { authorOf, type HandlerDeps, toEventBase, toName, type UserAction } from "./user-action.ts";

export const ASK = "ask";
export const IMAGINE = "imagine";

/** Timeout for a post: shorter than Slack's three seconds, because those include the network round trip. */
const POST_MS = 1_500;
/** Longest quote of a question. The model still reads the whole question. */
const MAX_SHOWN_CHARS = 2_000;

/** Remembered questions keep a repeated delivery from posting a question again. */
const MAX_ASKED = 500;

type CommandWords = Pick<CommandEvent, "name" | "text">;

/**
 * Finds out which of the bot's commands a person typed. All apps of a workspace share one set of slash commands, so the
 * bot's commands can have names like `/palaver-model`, or be subcommands of one: `/palaver model`.
 */
export function readCommand(command: string, text: string, known: ReadonlySet<string>): CommandWords {
  const name = command.replace(/^\//, "").toLowerCase();
  if (known.has(name)) return { name, text: text.trim() };
  const ending = name.slice(name.lastIndexOf("-") + 1);
  if (known.has(ending)) return { name: ending, text: text.trim() };
  const [, first = "", rest = ""] = /^\s*(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  const word = first.toLowerCase().replace(/^[/!]/, "");
  if (known.has(word)) return { name: word, text: rest.trim() };
  return text.trim() === "" ? { name: "help", text: "" } : { name: ASK, text: text.trim() };
}

export interface CommandsDeps extends HandlerDeps {
  /** Never rejects. */
  openImagine(userAction: UserAction, triggerId: string): Promise<void>;
  /** Never rejects. */
  openPersona(userAction: UserAction, triggerId: string): Promise<void>;
}

/** Handles slash commands. Their answers are ephemeral, except those of `/ask` and `/imagine`. */
export function createCommands(
  deps: CommandsDeps,
): (payload: CommandPayload, workspace: Workspace) => Promise<HandlerResult> {
  const known = new Set([ASK, IMAGINE, ...deps.commands.map(({ name }) => name)]);
  const asked = new BoundedMap<string, Promise<HandlerResult>>(MAX_ASKED);

  async function give(
    words: CommandWords,
    userAction: UserAction,
    { isPrivate }: { isPrivate: boolean },
  ): Promise<HandlerResult> {
    const event: CommandEvent = { kind: "command", ...(await toEventBase(userAction, { isPrivate }, deps)), ...words };
    return { events: [event] };
  }

  async function ask(text: string, userAction: UserAction): Promise<HandlerResult> {
    if (text === "") return say("Write your question after the command: `/ask why is the sky blue?`");
    // Looks the author up only once, because each look-up can take one of Slack's three seconds.
    const author = await authorOf(userAction, deps.people);
    try {
      // Posts the question and answers in its thread, because other people do not see a slash command.
      const threadTs = await show(text, author.name, userAction, deps);
      return { events: [await toQuestion(text, { ...userAction, author, threadTs }, threadTs, deps)] };
    } catch (error) {
      if (isAbsence(error)) return say(NOT_HERE);
      deps.log.warn({ err: error }, "Could not post a question from /ask to its channel.");
      return say("I couldn't post your question here, so I didn't answer it. Try again, or mention me instead.");
    }
  }

  async function imagine(text: string, userAction: UserAction, triggerId: string): Promise<HandlerResult> {
    if (text === "" && deps.imagine !== undefined) {
      return { events: [], afterwards: () => deps.openImagine(userAction, triggerId) };
    }
    if (!(await isMember(userAction.workspace, userAction.channelId, deps))) return say(NOT_HERE);
    return give({ name: IMAGINE, text }, userAction, { isPrivate: false });
  }

  return async (payload, workspace) => {
    const words = readCommand(payload.command, unescapeMarkup(payload.text), known);
    const userAction: UserAction = {
      workspace,
      person: { id: payload.user_id, name: payload.user_name, team_id: payload.team_id },
      channelId: payload.channel_id,
      responseUrl: payload.response_url,
      name: toName("command", payload),
    };
    if (words.name === ASK) {
      const asking = asked.get(userAction.name) ?? ask(words.text, userAction);
      asked.set(userAction.name, asking);
      return asking;
    }
    if (words.name === IMAGINE) return imagine(words.text, userAction, payload.trigger_id);
    if (words.name === PERSONA && words.text === "") {
      return { events: [], afterwards: () => deps.openPersona(userAction, payload.trigger_id) };
    }
    return give(words, userAction, { isPrivate: true });
  };
}

/** A question that starts a thread under the message that shows the question. */
export async function toQuestion(
  text: string,
  userAction: UserAction,
  messageTs: string,
  deps: Pick<HandlerDeps, "people" | "now">,
): Promise<MessageEvent> {
  const { workspace, channelId } = userAction;
  return {
    kind: "message",
    ...(await toEventBase(userAction, { isPrivate: false }, deps)),
    messageId: toMessageId({ teamId: workspace.teamId, channelId, ts: messageTs }),
    text,
    attachments: [],
    addressed: "bot",
  };
}

/** Resolves to the `ts` of the message. */
async function show(text: string, name: string, userAction: UserAction, { api }: HandlerDeps): Promise<string> {
  const markup = `*${escapeMarkup(name).replaceAll("*", "")}* asks:\n${escapeMarkup(truncate(text, MAX_SHOWN_CHARS)).replace(/^/gm, "&gt; ")}`;
  const message = {
    channel: userAction.channelId,
    text: markup,
    blocks: [section(markup)],
    unfurl_links: false,
    unfurl_media: false,
    link_names: false,
  };
  const { ts } = await api.call(userAction.workspace.teamId, "chat.postMessage", message, AbortSignal.timeout(POST_MS));
  if (typeof ts !== "string") throw new TypeError("Slack did not return the ts of the message it created.");
  return ts;
}

function say(text: string): HandlerResult {
  return { events: [], response: { response_type: "ephemeral", replace_original: false, text } };
}
