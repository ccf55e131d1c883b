import type { Logger } from "pino";
import type { ActionEvent, Adapter, CommandEvent, InboundEvent, MessageEvent } from "./adapter.ts";
import type { Answers } from "./answers.ts";
import { foldBatch, takeBatch } from "./batch.ts";
import { type Command, postNotice } from "./commands/command.ts";
import { SinkError } from "./errors.ts";
import type { History } from "./history.ts";
import type { Worker } from "./queue/queue.ts";

export interface BotDeps {
  answers: Answers;
  history: History;
  commands: readonly Command[];
  adapterOf(platform: string): Adapter;
  log: Logger;
}

/** One inbound event becomes a turn, a command, a change of the history, or nothing. */
export function createBot({ answers, history, commands, adapterOf, log }: BotDeps): Worker {
  async function onMessages(batch: InboundEvent[], signal: AbortSignal): Promise<void> {
    const messages = foldBatch(batch);
    const [first] = messages;
    if (first === undefined) return answers.cancel(batch);
    if (first.addressed === "other") return history.setFollowed(first.conversationId, false);
    if (!(await isForUs(messages))) return;
    await answers.answer(batch, messages, signal);
  }

  /** A message to nobody in particular is ours while the bot follows the conversation; the first one to the bot begins that. */
  async function isForUs(messages: MessageEvent[]): Promise<boolean> {
    const [{ conversationId }] = messages as [MessageEvent];
    try {
      if (messages.every(({ addressed }) => addressed !== "bot")) return await history.isFollowed(conversationId);
      await history.setFollowed(conversationId, true);
      return true;
    } catch (error) {
      log.warn({ err: error, conversationId }, "whether the bot follows this conversation is not known");
      return messages.some(({ addressed }) => addressed === "bot");
    }
  }

  async function onCommand(event: CommandEvent, signal: AbortSignal): Promise<void> {
    const command = commands.find(({ name }) => name === event.name);
    const sink = adapterOf(event.reply.platform).sink({ ...event.reply, visibleTo: event.author.id });
    if (command !== undefined) return unlessRefused(event, command.run(event, sink, signal));
    const known = commands.map(({ name }) => `/${name}`).join(", ");
    const text = `There is no command of that name. I know ${known}.`;
    await unlessRefused(event, postNotice(sink, event, text, signal));
  }

  async function onAction(event: ActionEvent, signal: AbortSignal): Promise<void> {
    // A stop that finds its turn still running has done its work in `notice`.
    if (event.action === "stop") return;
    const refusal = await answers.retry(event, signal);
    if (refusal === undefined) return;
    const sink = adapterOf(event.reply.platform).sink({ ...event.reply, visibleTo: event.author.id });
    await unlessRefused(event, postNotice(sink, event, refusal, signal));
  }

  /** A place that takes no messages from us any more ends the matter: there is nobody to tell. */
  async function unlessRefused({ key }: InboundEvent, delivery: Promise<void>): Promise<void> {
    try {
      await delivery;
    } catch (error) {
      const isFinal = error instanceof SinkError && error.kind !== "unavailable" && error.kind !== "rate-limited";
      if (!isFinal) throw error;
      log.warn({ err: error, key }, "an answer to a command or a button could not be delivered");
    }
  }

  async function work(batch: InboundEvent[], signal: AbortSignal): Promise<void> {
    const [first] = batch;
    switch (first?.kind) {
      case "message":
        return onMessages(batch, signal);
      case "edited":
        await history.edit(first.messageId, first.text, first.attachments);
        return;
      case "deleted":
        await history.remove(first.messageId);
        return;
      case "command":
        return onCommand(first, signal);
      case "action":
        return onAction(first, signal);
      case undefined:
    }
  }

  return { take: takeBatch, work, notice: answers.interrupt };
}
