import { createNonce, describeProblem, postJson } from "./requests.ts";
import type { State } from "./state.ts";

export function toNewChat(): string {
  return `chat-${createNonce()}`;
}

export function openNewChat(state: State): void {
  go(findUnsentChat(state) ?? toNewChat());
}

function findUnsentChat({ writing, chats, chatId }: State): string | undefined {
  const begun = [...writing].findLast(
    ([id, { text, uploads }]) => id.startsWith("chat-") && !chats.has(id) && (text.trim() !== "" || uploads.length > 0),
  );
  return begun?.[0] === chatId ? undefined : begun?.[0];
}

/** Resolves to the problem, or to "". */
export async function renameChat(id: string, title: string): Promise<string> {
  try {
    await postJson(`/local/chats/${id}/rename`, { title });
    return "";
  } catch (error) {
    return describeProblem(error);
  }
}

/** Opens a chat. The URL contains it, so that going back and reloading work. */
export function go(chatId: string): void {
  location.hash = chatId;
}

export function readChat(hash: string): string | undefined {
  return /^#([a-z0-9-]+)$/.exec(hash)?.[1];
}

/** True for a chat that was deleted or never existed. */
export function isGone({ chats, leaving }: State, chatId: string): boolean {
  if (leaving.has(chatId)) return true;
  return chats.get(chatId)?.isDeleted ?? !chatId.startsWith("chat-");
}
