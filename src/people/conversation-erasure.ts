import type { History } from "../history/history.ts";
import type { JobStore } from "../imagine/job-store.ts";
import type { Insight } from "../insight/insight.ts";
import type { Settings } from "../settings/settings.ts";
import type { Ledger } from "../tools/ledger.ts";
import type { TurnRecords } from "../turn/record.ts";
import type { Usage } from "../usage/usage.ts";

export interface ConversationErasureDeps {
  history: Pick<History, "conversations" | "forgetConversation">;
  records: Pick<TurnRecords, "eraseConversations">;
  ledger: Pick<Ledger, "takeBack">;
  jobs: Pick<JobStore, "erase">;
  settings: Pick<Settings, "erase" | "list">;
  usage: Pick<Usage, "eraseWorkspace">;
  /** Absent without a dashboard. */
  insight?: Pick<Insight, "eraseConversations"> | undefined;
  /** Removes what was erased from the disk and the memory of this process too. */
  eraseCopies(): void;
}

/** One workspace of a platform. */
export interface ErasedWorkspace {
  platform: string;
  workspaceId: string;
  /** The ids of its conversations begin so. */
  prefix: string;
}

/**
 * Erases all data of a workspace's conversations, and its settings and counts, whether or not a conversation is left.
 * Resolves to the number of conversations. After a rejection the next call goes on with what is left.
 */
export type EraseConversations = (workspace: ErasedWorkspace) => Promise<number>;

export function createEraseConversations(deps: ConversationErasureDeps): EraseConversations {
  const { history, records, ledger, jobs, settings, usage, insight, eraseCopies } = deps;

  return async ({ platform, workspaceId, prefix }) => {
    // Listed before anything is erased: a store may lose its place when it is changed while it is walked through.
    const conversationIds = new Set(await Array.fromAsync(history.conversations(prefix)));
    for (const conversationId of conversationIds) await history.forgetConversation(conversationId);
    await jobs.erase(({ conversationId }) => conversationId.startsWith(prefix));
    await ledger.takeBack({ prefix });
    await insight?.eraseConversations(prefix);
    const places = await records.eraseConversations(prefix);
    // Settings outlive the records of turns, and a call before this one may have erased the records alone.
    const own = (await settings.list()).filter((of) => of.platform === platform && of.workspaceId === workspaceId);
    const channels = new Map(
      [...places, ...own].map((place) => [JSON.stringify([place.platform, place.workspaceId, place.channelId]), place]),
    );
    for (const channel of channels.values()) await settings.erase(channel);
    await usage.eraseWorkspace(platform, workspaceId);
    eraseCopies();
    return conversationIds.size;
  };
}
