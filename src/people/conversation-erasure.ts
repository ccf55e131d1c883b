import { eraseCopies, type PersonalDataDeps } from "./personal-data.ts";

export interface ErasedWorkspace {
  platform: string;
  workspaceId: string;
  /** Prefix of the ids of the workspace's conversations. */
  prefix: string;
}

/**
 * Erases all conversations of a workspace, with their settings and counts. Resolves to the number of conversations.
 * After a rejection, a second call erases the rest.
 */
export type EraseConversations = (workspace: ErasedWorkspace) => Promise<number>;

export function createEraseConversations(deps: PersonalDataDeps): EraseConversations {
  const { history, imagine, settings, usage, insight, stores } = deps;

  return async ({ platform, workspaceId, prefix }) => {
    // List all conversations first, because some stores lose their position if entries change during the iteration.
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
