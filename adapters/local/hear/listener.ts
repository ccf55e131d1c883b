import { RequestError } from "../errors.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { ActBody, ActionBody, EditBody, MessageRow, SendBody, StopBody } from "../page/wire.ts";
import type { OutboxChange } from "../store/outbox.ts";
import type { EventStream } from "../write/event-stream.ts";
import type { SinkDeps } from "../write/sink.ts";
import { type DeliveryDeps, deliver, offer } from "./delivery.ts";
import {
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
    Pick<SinkDeps, "chats" | "messages" | "files" | "now">,
    Pick<LocalAdapterOptions, "commands"> {
  eventStream: Pick<EventStream, "findProgress">;
  changed: () => void;
}

/** Accepts the person's actions. Each resolves when the queue has its event. */
export interface UserActions {
  send(body: SendBody): Promise<number>;
  edit(id: number, body: EditBody): Promise<void>;
  erase(id: number, body: ActBody): Promise<void>;
  act(id: number, body: ActionBody): Promise<void>;
  /** Stops a turn that has no message with a Stop button yet. */
  stop(body: StopBody): Promise<void>;
  /** Withdraws a message that the queue never accepted. */
  withdraw(nonce: string): void;
}

export function createUserActions(deps: ActionDeps): UserActions {
  const { tables, messages, outbox, eventStream } = deps;
  const { inTransaction } = tables;

  return {
    async send(body) {
      const id = inTransaction(() => store(deps, body));
      deps.changed();
      await deliver(deps, `local:${body.nonce}`);
      return id;
    },
    async edit(id, body) {
      const { userAction, message } = findOwn(deps, id, body);
      if (message.isCommand) throw new RequestError(409, "A command cannot be edited; send it again.");
      const change: OutboxChange = { kind: "edit", messageId: id, text: body.text, at: deps.now() };
      await offer(deps, toEditEvent(userAction, body.text), change);
    },
    async erase(id, body) {
      if (messages.find(id)?.isDeleted === true) return;
      const { userAction } = findOwn(deps, id, body);
      await offer(deps, toDeletedEvent(userAction), { kind: "erase", messageId: id });
    },
    async act(id, body) {
      const message = findMessage(deps, id);
      const isThere = message.buttons.some((each) => each.action === body.action && each.turnId === body.turnId);
      if (!isThere)
        throw new RequestError(
          409,
          "This button no longer works: the answer has changed. Use the buttons under the newest version.",
        );
      const userAction = { nonce: body.nonce, message, at: deps.now() };
      await offer(deps, toActionEvent(userAction, body), toChange(id, body));
    },
    async stop({ nonce, turnId }) {
      const progress = eventStream.findProgress(turnId);
      // The answer has a message by now, or it has ended. The page shows that message.
      if (progress === undefined) throw new RequestError(409, "There's nothing left to stop.");
      await offer(deps, toStopEvent(progress.chatId, turnId, { nonce, at: deps.now() }), { kind: "none" });
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

function toChange(messageId: number, { action }: ActionBody): OutboxChange {
  if (action !== "good" && action !== "bad") return { kind: "none" };
  return { kind: "judge", messageId, judgement: action };
}

/** The words of a prompt without its flags: `--ar 16:9` says nothing about a chat. */
function withoutOptions(prompt: string): string {
  const words = prompt.replace(/(?:^|\s)(?:--|—)(?:model[ =]\S+|[a-z]+(?:[ =][\d:/]+k?(?!\S))?)/gi, "").trim();
  return words === "" ? prompt : words;
}

/** The text for a chat's title. A command has none, unless it requests an image. */
function toSubject(typed: TypedCommand, text: string): string {
  if (typed.kind !== "command") return text;
  return typed.name === "imagine" ? withoutOptions(typed.text) : "";
}

/** Stores a message once, and hides it until the queue has its event. */
function store(deps: ActionDeps, body: SendBody): number {
  const { messages, files, chats } = deps;
  const there = messages.findByNonce(body.nonce);
  if (there !== undefined) return there.id;
  if (!files.areFree(body.fileIds)) throw new RequestError(400, "A file in this message is gone; attach it again.");

  const typed = readCommand(body.text, deps.commands);
  if (typed.kind === "unknown") throw new RequestError(400, typed.message);
  const subject = toSubject(typed, body.text);
  if (body.isNewChat) chats.ensure(body.chatId, subject, deps.now());
  if (chats.find(body.chatId) === undefined) throw new RequestError(404, "This chat no longer exists.");
  chats.name(body.chatId, subject);

  const isCommand = typed.kind === "command";
  const { nonce, chatId, text } = body;
  const by = { isBot: false, replyTo: null, visibleTo: null };
  const options = isCommand && typed.name === "imagine" ? (body.options ?? {}) : {};
  const rest = { isCommand, options, buttons: [], steps: [], isStreaming: false, isHidden: true, at: deps.now() };
  const { id } = messages.insert({ nonce, chatId, text, ...by, ...rest });
  files.attach(body.fileIds, id);

  const message = messages.find(id);
  if (message === undefined) throw new Error(`Message ${id} was not stored.`);
  const userAction: UserAction = { nonce, message, at: message.createdAt };
  const event = isCommand
    ? toCommandEvent(userAction, typed.name, typed.text, typed.name === "persona" ? body.persona : options)
    : toMessageEvent(userAction, text);
  deps.outbox.note(event, { kind: "show", messageId: id });
  return id;
}

function findMessage({ messages }: ActionDeps, id: number): MessageRow {
  const message = messages.find(id);
  if (message === undefined || message.isDeleted) throw new RequestError(404, "This message was deleted.");
  return message;
}

function findOwn(deps: ActionDeps, id: number, { nonce }: ActBody): { message: MessageRow; userAction: UserAction } {
  const message = findMessage(deps, id);
  if (message.isBot) throw new RequestError(403, "You can change only your own messages.");
  return { message, userAction: { nonce, message, at: deps.now() } };
}
