import { eraseCopies, type PersonalDataDeps } from "./personal-data.ts";

export interface ErasedWorkspace {
  platform: string;
  workspaceId: string;
  /** All of its conversation ids start with this. */
  prefix: string;
}

/**
 * Erases all conversations in a workspace with their settings and counts, even if none is left. Resolves to the number
 * of conversations. If it rejects, call it again to erase the rest.
 */
export type EraseConversations = (workspace: ErasedWorkspace) => Promise<number>;

export function createEraseConversations(deps: PersonalDataDeps): EraseConversations {
  const { history, imagine, settings, usage, insight, stores } = deps;

  return async ({ platform, workspaceId, prefix }) => {
    // Lists them first, because some stores lose their position if they change during iteration.
    const conversationIds = new Set(await Array.fromAsync(history.conversations(prefix)));
    for (const conversationId of conversationIds) await history.forgetConversation(conversationId);
    await insight?.eraseConversations(prefix);
    for (const conversation of await Array.fromAsync(stores.conversations(prefix))) {
      await imagine.erase({ conversation });
      await stores.eraseConversation(conversation);
    }
    const channels = await settings.list();
    for (const channel of channels) {
      if (channel.platform === platform && channel.workspaceId === workspaceId) await settings.erase(channel);
    }
    await usage.eraseWorkspace(platform, workspaceId);
    eraseCopies(deps);
    return conversationIds.size;
  };
}
