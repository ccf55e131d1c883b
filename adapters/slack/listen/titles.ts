import type { Logger } from "pino";
import { toTitle } from "../../../src/text/title.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, isNoAgent } from "../api/error.ts";
import type { SlackMessage } from "./inbound.ts";

const TITLE_MS = 5_000;
const MAX_TITLE_CHARS = 60;

/**
 * Names a thread of the pane in which people talk to the bot alone after the question that begins it. Best effort: never
 * rejects, and never waited for.
 */
export type TitleThread = (message: SlackMessage, question: string) => void;

export interface TitlesDeps {
  api: Pick<SlackApi, "call">;
  log: Logger;
}

export function createTitleThread({ api, log }: TitlesDeps): TitleThread {
  const withoutAgents = new Set<string>();

  async function set({ workspace: { teamId }, channelId, ts }: SlackMessage, title: string): Promise<void> {
    try {
      const args = { channel_id: channelId, thread_ts: ts, title };
      await api.call(teamId, "assistant.threads.setTitle", args, AbortSignal.timeout(TITLE_MS));
    } catch (error) {
      if (isNoAgent(error)) withoutAgents.add(teamId);
      log.info({ code: codeOf(error), team: teamId }, "A thread could not be given a title.");
    }
  }

  return (message, question) => {
    // Each message outside of a thread begins one there; a command is no question.
    const begins = message.isDirect && message.threadTs === undefined && !question.startsWith("!");
    if (!begins || withoutAgents.has(message.workspace.teamId)) return;
    const title = toTitle(question, MAX_TITLE_CHARS);
    if (title !== "") void set(message, title);
  };
}
