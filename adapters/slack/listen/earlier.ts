import type { EarlierMessage, MessageEvent } from "../../../src/port/events.ts";
import { readExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { SlackApiError } from "../api/error.ts";
import { toBodies } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { readMessageId, timeOf } from "../ids.ts";
import { type InboundDeps, messageIdOf, readSaid, type Said, toContent } from "./inbound.ts";

/** What Slack gives to an app that is sold, at most, once a minute. */
const MAX_MESSAGES = 15;

export interface EarlierDeps extends InboundDeps {
  api: Pick<SlackApi, "call">;
  workspaces: Workspaces;
  now(): number;
}

/** Reads the beginning of a thread up to a message in it, people's words alone. */
export type ReadEarlier = (event: MessageEvent, signal: AbortSignal) => Promise<EarlierMessage[]>;

/** One call for each thread, and none while Slack wants none: rejects then at once. */
export function createReadEarlier(deps: EarlierDeps): ReadEarlier {
  const paused = new Map<string, number>();

  async function read(teamId: string, args: Record<string, unknown>, signal: AbortSignal) {
    const waitMs = (paused.get(teamId) ?? 0) - deps.now();
    if (waitMs > 0) throw new Error(`Slack lets no thread be read for another ${Math.ceil(waitMs / 1_000)} s.`);
    try {
      return await deps.api.call(teamId, "conversations.replies", args, signal);
    } catch (error) {
      const pauseMs = error instanceof SlackApiError ? error.retryAfterMs : undefined;
      if (pauseMs !== undefined) paused.set(teamId, deps.now() + pauseMs);
      throw error;
    }
  }

  return async ({ messageId, reply }, signal) => {
    const { threadId, channelId } = reply;
    const ts = readMessageId(messageId)?.ts;
    if (threadId === undefined || ts === undefined || ts === threadId) return [];
    const { team } = readExtra(reply);
    const workspace = await deps.workspaces.find(team, signal);
    if (workspace === undefined) return [];
    const found = await read(team, { channel: channelId, ts: threadId, latest: ts, limit: MAX_MESSAGES }, signal);
    const said = toBodies(found["messages"])
      .map((raw) => readSaid(raw, { channelId, channelType: undefined }, workspace))
      .filter((one) => one !== undefined && !one.isBot && Number(one.ts) < Number(ts));
    return Promise.all(said.map((one) => toEarlier(one as Said, workspace, deps)));
  };
}

async function toEarlier(said: Said, workspace: Workspace, deps: InboundDeps): Promise<EarlierMessage> {
  const [content, author] = await Promise.all([
    toContent(said, deps),
    deps.people.toAuthor(workspace, said.userId, { name: said.userName, team: said.userTeam }),
  ]);
  return { messageId: messageIdOf(said), author, ...content, at: Math.floor(timeOf(said.ts)) };
}
