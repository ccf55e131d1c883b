import type { Author } from "../../../src/port/events.ts";
import { RequestError } from "../errors.ts";
import { PLATFORM } from "../ids.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { ActionBody, ChannelRow, DeleteBody, EditBody, MessageRow, SendBody, StopBody } from "../page/wire.ts";
import { findAuthor } from "../store/directory.ts";
import type { OutboxChange } from "../store/outbox.ts";
import type { EventStream } from "../write/event-stream.ts";
import type { SinkDeps } from "../write/sink.ts";
import { type DeliveryDeps, deliver, offer } from "./delivery.ts";
import {
  type Names,
  readCommand,
  type TypedCommand,
  toActionEvent,
  toCommandEvent,
  toDeletedEvent,
  toEditEvent,
  toMessageEvent,
  toStopEvent,
  type UserAction,
} from "./inbound.ts";

export interface ActionDeps
  extends DeliveryDeps,
    Pick<SinkDeps, "directory" | "messages" | "files" | "now">,
    Pick<LocalAdapterOptions, "botName" | "commands" | "isListening"> {
  eventStream: Pick<EventStream, "findProgress">;
  changed: () => void;
}

/** Takes people's actions at the page. Each resolves when the queue has its event, or at once when it makes none. */
export interface UserActions {
  send(body: SendBody): Promise<number>;
  edit(id: number, body: EditBody): Promise<void>;
  erase(id: number, body: DeleteBody): Promise<void>;
  act(id: number, body: ActionBody): Promise<void>;
  /** Stops a turn that has no message with a button yet. */
  stop(body: StopBody): Promise<void>;
  /** Takes back a message that was never accepted. */
  withdraw(nonce: string): void;
}

export function createUserActions(deps: ActionDeps): UserActions {
  const { tables, directory, messages, outbox, eventStream } = deps;
  const { inTransaction } = tables;

  return {
    async send(body) {
      const author = findAuthor(directory, body.authorId);
      const names = await readNames(deps, body.channelId);
      const id = inTransaction(() => store(deps, body, author, names));
      deps.changed();
      await deliver(deps, `local:${body.nonce}`);
      return id;
    },
    async edit(id, body) {
      const { userAction, message } = findOwn(deps, id, body);
      if (message.isCommand) throw new RequestError(409, "A command cannot be edited; give it again.");
      const change: OutboxChange = { kind: "edit", messageId: id, text: body.text, at: deps.now() };
      const names = await readNames(deps, message.channelId);
      const event = toEditEvent(userAction, message.text, body.text, names);
      if (event !== undefined) return offer(deps, event, change);
      inTransaction(() => messages.edit(id, body.text, deps.now()));
      deps.changed();
    },
    async erase(id, body) {
      if (messages.find(id)?.isDeleted === true) return;
      const { userAction, message } = findOwn(deps, id, body);
      const change: OutboxChange = { kind: "erase", messageId: id };
      if (toEditEvent(userAction, message.text, "", await readNames(deps, message.channelId)) !== undefined) {
        return offer(deps, toDeletedEvent(userAction), change);
      }
      inTransaction(() => messages.erase(id));
      deps.changed();
    },
    async act(id, body) {
      const author = findAuthor(directory, body.authorId);
      const { message, channel } = findMessage(deps, id);
      if (message.visibleTo !== null && message.visibleTo !== author.id) {
        throw new RequestError(403, "Only whoever sees a message can press its buttons.");
      }
      const isThere = message.buttons.some((each) => each.action === body.action && each.turnId === body.turnId);
      if (!isThere) throw new RequestError(409, "That button is no longer there; the answer has gone on.");
      const userAction = { nonce: body.nonce, message, channelKind: channel.kind, author, at: deps.now() };
      await offer(deps, toActionEvent(userAction, body), toChange(id, body));
    },
    async stop({ nonce, authorId, turnId }) {
      const author = findAuthor(directory, authorId);
      const place = eventStream.findProgress(turnId);
      // The answer is written or has ended meanwhile: its message says how.
      if (place === undefined) throw new RequestError(409, "There is nothing to stop any more.");
      await offer(deps, toStopEvent(place, turnId, { nonce, author, at: deps.now() }), { kind: "none" });
    },
    withdraw(nonce) {
      inTransaction(() => {
        const message = messages.findByNonce(nonce);
        if (message === undefined || !messages.isHidden(message.id)) return;
        outbox.withdraw(`local:${nonce}`);
        messages.erase(message.id);
      });
      deps.changed();
    },
  };
}

function toChange(messageId: number, { action, authorId }: ActionBody): OutboxChange {
  if (action !== "good" && action !== "bad") return { kind: "none" };
  return { kind: "judge", messageId, authorId, judgement: action };
}

/** The words of a prompt without its flags: `--ar 16:9` says nothing about a chat. */
function withoutOptions(prompt: string): string {
  const words = prompt.replace(/(?:^|\s)(?:--|—)(?:model[ =]\S+|[a-z]+(?:[ =][\d:/]+k?(?!\S))?)/gi, "").trim();
  return words === "" ? prompt : words;
}

/** The text that may name a chat: a command names none, unless it has something drawn. */
function toSubject(typed: TypedCommand, text: string): string {
  if (typed.kind !== "command") return text;
  return typed.name === "imagine" ? withoutOptions(typed.text) : "";
}

/** Stores a message once. It stays hidden until the queue has its event; without an event it is shown at once. */
function store(deps: ActionDeps, body: SendBody, author: Author, names: Names): number {
  const { messages, files, directory } = deps;
  const there = messages.findByNonce(body.nonce);
  if (there !== undefined) return there.id;
  if (!files.areFree(body.fileIds)) throw new RequestError(400, "A file of this message is gone; attach it again.");

  const typed = readCommand(body.text, deps.commands);
  if (typed.kind === "unknown") throw new RequestError(400, typed.message);
  const subject = toSubject(typed, body.text);
  if (body.isNewChat) directory.ensureChat(body.channelId, subject, deps.now());
  const channel = findPlace(deps, body);
  directory.nameChat(body.channelId, subject);

  const isCommand = typed.kind === "command";
  const { nonce, channelId, threadId, text } = body;
  const by = { authorId: author.id, askedBy: null, replyTo: null, visibleTo: null };
  const options = isCommand && typed.name === "imagine" ? (body.options ?? {}) : {};
  const rest = { isCommand, options, buttons: [], steps: [], isStreaming: false, isHidden: true, at: deps.now() };
  const { id } = messages.insert({ nonce, channelId, threadId, text, ...by, ...rest });
  files.attach(body.fileIds, id);

  const message = messages.find(id);
  if (message === undefined) throw new Error(`Message ${id} was not stored.`);
  const userAction: UserAction = { nonce, message, channelKind: channel.kind, author, at: message.createdAt };
  const event = isCommand
    ? toCommandEvent(userAction, typed.name, typed.text, typed.name === "persona" ? body.persona : options)
    : toMessageEvent(userAction, text, names);
  if (event === undefined) messages.show(id);
  else deps.outbox.note(event, { kind: "show", messageId: id });
  return id;
}

function findPlace(deps: ActionDeps, { channelId, threadId }: SendBody): ChannelRow {
  const channel = deps.directory.channel(channelId);
  if (channel === undefined) throw new RequestError(404, "This conversation no longer exists.");
  if (threadId === null) return channel;
  const root = deps.messages.find(threadId);
  const isRoot = root?.channelId === channelId && root.threadId === null && channel.kind === "channel";
  if (!isRoot) throw new RequestError(404, "This thread does not exist.");
  return channel;
}

function findMessage({ messages, directory }: ActionDeps, id: number): { message: MessageRow; channel: ChannelRow } {
  const message = messages.find(id);
  const channel = message === undefined ? undefined : directory.channel(message.channelId);
  if (message === undefined || message.isDeleted || channel === undefined) {
    throw new RequestError(404, "This message was deleted.");
  }
  return { message, channel };
}

function findOwn(deps: ActionDeps, id: number, body: DeleteBody): { message: MessageRow; userAction: UserAction } {
  const author = findAuthor(deps.directory, body.authorId);
  const { message, channel } = findMessage(deps, id);
  if (message.authorId !== author.id) throw new RequestError(403, "Only whoever wrote a message can change it.");
  return { message, userAction: { nonce: body.nonce, message, channelKind: channel.kind, author, at: deps.now() } };
}

async function readNames({ directory, botName, isListening }: ActionDeps, channelId: string): Promise<Names> {
  const people = directory.people().map((person) => person.name);
  return { botName, people, isListening: (await isListening?.({ platform: PLATFORM, channelId })) === true };
}
