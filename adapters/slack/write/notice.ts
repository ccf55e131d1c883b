import type { Workspace } from "../api/workspaces.ts";
import { createEphemeralWriter, type EphemeralWriterDeps } from "./private.ts";

const TELL_MS = 5_000;

interface Recipient {
  workspace: Pick<Workspace, "teamId">;
  person: { id: string };
  channelId?: string | undefined;
  threadTs?: string | undefined;
  responseUrl?: string | undefined;
}

/**
 * Shows a message to this person only: by the response URL, which works even if the bot is not in the channel, or else
 * by `chat.postEphemeral`. Rejects if neither works.
 */
export type TellPerson = (to: Recipient, words: string) => Promise<void>;

export function createTellPerson(deps: Pick<EphemeralWriterDeps, "api" | "apiUrl">): TellPerson {
  return async ({ workspace: { teamId }, person, channelId, threadTs, responseUrl }, words) => {
    if (channelId === undefined) return;
    const writer = createEphemeralWriter({ ...deps, teamId, channelId, threadTs, userId: person.id, responseUrl });
    await writer.post({ markdown: words, buttons: [], streaming: false }, "told", AbortSignal.timeout(TELL_MS));
  };
}
