import type { CommandHelp } from "../../../src/port/catalogue.ts";
import type { CommandEvent, MessageEvent } from "../../../src/port/events.ts";
import { toLine } from "../../../src/text/quote-name.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { isMember, NOT_HERE } from "../hear/access.ts";
import { readShown } from "../hear/content.ts";
import { readWords } from "../hear/wording.ts";
import { toMessageId } from "../ids.ts";
import { ASK_ABOUT, DRAW, toShortcutId, USE_AS_REFERENCE } from "../install/slash-commands.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { toQuestion } from "./commands.ts";
import { note } from "./forms.ts";
import type { ImagineForms } from "./imagine-form.ts";
import type { MessageShortcutPayload, ShortcutPayload } from "./payloads.ts";
import { authorOf, type HandlerDeps, toEventBase, toName, type UserAction } from "./user-action.ts";

/** A trigger can open a view for three seconds. */
const OPEN_MS = 2_500;
/** Less than Slack's three seconds, which include the network. */
const POST_MS = 1_500;
const NO_PICTURES = "I found no image in that message that I can use. Choose a message with an image.";
const NO_DRAWING = "I can't create images here: they're switched off.";
const PICTURE = /^image\//;

export interface ShortcutsDeps extends HandlerDeps {
  forms: ImagineForms | undefined;
}

export interface Shortcuts {
  onMessage(payload: MessageShortcutPayload, workspace: Workspace): Promise<HandlerResult>;
  onGlobal(payload: ShortcutPayload, workspace: Workspace): Promise<HandlerResult>;
}

export function createShortcuts(deps: ShortcutsDeps): Shortcuts {
  const { forms, imagine } = deps;

  function tell(payload: MessageShortcutPayload, workspace: Workspace, words: string): HandlerResult {
    const { user: person, channel, message, response_url: responseUrl } = payload;
    const recipient = { workspace, person, channelId: channel.id, threadTs: message.thread_ts, responseUrl };
    return { events: [], afterwards: () => deps.tellPerson(recipient, words) };
  }

  async function askAbout(payload: MessageShortcutPayload, workspace: Workspace): Promise<HandlerResult> {
    const { message, channel, user, response_url: responseUrl } = payload;
    const threadTs = message.thread_ts ?? message.ts;
    const userAction: UserAction = {
      workspace,
      person: user,
      channelId: channel.id,
      threadTs,
      activeThread: message.thread_ts,
      responseUrl,
      name: toName("shortcut", payload),
    };
    // Looks everything up in parallel, because Slack waits only three seconds.
    const [isHere, words, writer, author] = await Promise.all([
      isMember(workspace, channel.id, deps),
      readWords(readShown(message), workspace, deps.people),
      message.user === undefined || message.bot_id ? undefined : deps.people.toAuthor(workspace, message.user),
      authorOf(userAction, deps.people),
    ]);
    if (!isHere) return tell(payload, workspace, NOT_HERE);
    const quoted = words.replace(/^/gm, "> ");
    const name = writer?.name ?? message.bot_profile?.name ?? message.username;
    const from = name === undefined ? "" : ` from ${toLine(name)}`;
    const text = `Explain or answer this message${from}:\n${quoted}`;
    // The question counts as the newest message of the thread, so everything before it is context.
    const question = await toQuestion(text, { ...userAction, author }, payload.action_ts ?? message.ts, deps);
    const attachments = deps.toAttachments(workspace, message.files);
    const quotes = toMessageId({ teamId: workspace.teamId, channelId: channel.id, ts: message.ts });
    const event: MessageEvent = { ...question, attachments, quotes };
    return { events: [event] };
  }

  function useAsReference(payload: MessageShortcutPayload, workspace: Workspace): HandlerResult {
    const { message, channel, user, response_url: responseUrl, trigger_id: trigger } = payload;
    if (forms === undefined || imagine === undefined) return tell(payload, workspace, NO_DRAWING);
    const pictures = picturesOf(message);
    if (pictures.length === 0) return tell(payload, workspace, NO_PICTURES);
    const references = deps.toAttachments(workspace, pictures).slice(0, imagine.maxReferences);
    const by = { workspace, person: user, channelId: channel.id, threadTs: message.thread_ts ?? message.ts };
    return { events: [], afterwards: () => forms.open(by, trigger, { responseUrl, references }) };
  }

  const findCommand = (type: "message" | "global", id: string) =>
    deps.commands.find(({ name, shortcut }) => shortcut !== undefined && toShortcutId(name, type) === id);

  async function giveHere(name: string, payload: MessageShortcutPayload, workspace: Workspace): Promise<HandlerResult> {
    const { message, channel, user: person, response_url: responseUrl } = payload;
    const { thread_ts: threadTs } = message;
    const thread = { threadTs, activeThread: threadTs };
    const place = { workspace, person, channelId: channel.id, responseUrl, ...thread };
    const userAction: UserAction = { ...place, name: toName("shortcut", payload) };
    const base = await toEventBase(userAction, { isPrivate: true }, deps);
    const event: CommandEvent = { kind: "command", ...base, name, text: "" };
    return { events: [event] };
  }

  /** Slack names no channel, so the answer goes into a thread of the direct conversation. */
  async function giveDirectly(
    { name, shortcut }: CommandHelp,
    payload: ShortcutPayload,
    workspace: Workspace,
  ): Promise<HandlerResult> {
    const { user: person } = payload;
    const opening = { channel: person.id, text: `*${shortcut?.title}*` };
    const signal = AbortSignal.timeout(POST_MS);
    const { channel, ts } = await deps.api.call(workspace.teamId, "chat.postMessage", opening, signal);
    if (typeof channel !== "string" || typeof ts !== "string") return NOTHING;
    const place = { workspace, person, channelId: channel, threadTs: ts };
    const base = await toEventBase({ ...place, name: toName("shortcut", payload) }, { isPrivate: false }, deps);
    const event: CommandEvent = { kind: "command", ...base, name, text: shortcut?.textWithoutChannel ?? "" };
    return { events: [event] };
  }

  return {
    async onMessage(payload, workspace) {
      if (payload.callback_id === ASK_ABOUT) return askAbout(payload, workspace);
      if (payload.callback_id === USE_AS_REFERENCE) return useAsReference(payload, workspace);
      const command = findCommand("message", payload.callback_id);
      return command === undefined ? NOTHING : giveHere(command.name, payload, workspace);
    },
    async onGlobal(payload, workspace) {
      const { callback_id, trigger_id, user: person } = payload;
      const command = findCommand("global", callback_id);
      if (command !== undefined) return giveDirectly(command, payload, workspace);
      if (callback_id !== DRAW) return NOTHING;
      if (forms !== undefined) {
        return { events: [], afterwards: () => forms.open({ workspace, person }, trigger_id, { references: [] }) };
      }
      const view = note("Create an image", NO_DRAWING);
      const call = { trigger_id, view };
      const tell = () => deps.api.call(workspace.teamId, "views.open", call, AbortSignal.timeout(OPEN_MS));
      return { events: [], afterwards: async () => void (await tell()) };
    },
  };
}

/** The images attached to a message, and those in its blocks, as in the bot's own messages. */
function picturesOf({ files, blocks }: MessageShortcutPayload["message"]): Body[] {
  // Slack shows no type for a file from another organisation, so each one can be an image.
  const attached = files.filter(({ mimetype, mode }) => mode === "file_access" || PICTURE.test(String(mimetype)));
  const shown = blocks.flatMap(({ type, slack_file: file, alt_text: name }) => {
    return type === "image" && typeof file === "object" && file !== null ? [{ name, ...file }] : [];
  });
  return [...attached, ...shown];
}
