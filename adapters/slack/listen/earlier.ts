import type { EarlierMessage, MessageEvent } from "../../../src/port/events.ts";
import { readExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { toBodies } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { readMessageId, timeOf } from "../ids.ts";
import { type InboundDeps, messageIdOf, readSlackMessage, type SlackMessage, toContent } from "./inbound.ts";

/** Slack gives an app that is sold no more than this, once a minute. */
const MAX_MESSAGES = 15;

export interface EarlierDeps extends InboundDeps {
  api: Pick<SlackApi, "call">;
  workspaces: Workspaces;
}

/** Reads the beginning of a thread up to a message in it, people's words alone. */
export type ReadEarlier = (event: MessageEvent, signal: AbortSignal) => Promise<EarlierMessage[]>;

/** One call for each thread. Rejects at once while Slack wants none. */
export function createReadEarlier(deps: EarlierDeps): ReadEarlier {
  return async ({ messageId, reply }, signal) => {
    const { threadId, channelId } = reply;
    const ts = readMessageId(messageId)?.ts;
    if (threadId === undefined || ts === undefined || ts === threadId) return [];
    const { team } = readExtra(reply);
    const workspace = await deps.workspaces.find(team, signal);
    if (workspace === undefined) return [];
    const range = { channel: channelId, ts: threadId, latest: ts, limit: MAX_MESSAGES };
    const found = await deps.api.call(team, "conversations.replies", range, signal);
    const messages = toBodies(found["messages"])
      .map((raw) => readSlackMessage(raw, { channelId, channelType: undefined }, workspace))
      .filter((one) => one !== undefined && !one.isBot && Number(one.ts) < Number(ts));
    return Promise.all(messages.map((one) => toEarlier(one as SlackMessage, workspace, deps)));
  };
}

async function toEarlier(message: SlackMessage, workspace: Workspace, deps: InboundDeps): Promise<EarlierMessage> {
  const [content, author] = await Promise.all([
    toContent(message, deps),
    deps.people.toAuthor(workspace, message.userId, { name: message.userName, team: message.userTeam }),
  ]);
  return { messageId: messageIdOf(message), author, ...content, at: Math.floor(timeOf(message.ts)) };
}
