import { z } from "zod";
import type { ActionEvent, CommandEvent } from "../../../src/port/events.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { codeOf, isNoAgent } from "../api/error.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, toMessageId } from "../ids.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { type HandlerDeps, toEventBase, type UserAction } from "./user-action.ts";

const SUGGEST_MS = 10_000;
const MAX_TITLE_CHARS = 60;
interface Suggestion {
  title: string;
  message: string;
}

const SUGGESTIONS: readonly Suggestion[] = [
  { title: "What can you do?", message: "What can you help me with?" },
  { title: "Improve my writing", message: "Help me improve something I've written. Ask me for it first." },
  { title: "Plan my day", message: "Help me plan my day. Ask me what I have to do." },
];
const PICTURE_SUGGESTION: Suggestion = {
  title: "Create an image",
  message: "Create an image of a lighthouse in the fog, as a woodcut.",
};

const stopped = z.object({
  channel: z.string(),
  user: z.string(),
  thread_ts: z.string().optional(),
  event_ts: z.string().default(""),
  streaming_message_ts: z.array(z.string()).default([]),
});

/** A person's pane: a conversation with the bot alone, next to a channel. */
export interface AssistantPane {
  channelId: string;
  threadTs?: string | undefined;
  lookingAt?: string | undefined;
}

export interface Assistant {
  /**
   * Suggests the prompts of the channel next to the pane, of the conversation, or else the defaults. Never rejects;
   * ignores failures.
   */
  suggest(workspace: Workspace, where: AssistantPane): Promise<void>;
  /** Stops the turns that the event names, as the bot's own Stop button does. Slack has already ended their streams. */
  onStopped(event: Body, workspace: Workspace): Promise<HandlerResult>;
}

export function createAssistant(deps: HandlerDeps): Assistant {
  const withoutAgents = new Set<string>();
  const usual = deps.imagine === undefined ? SUGGESTIONS : [...SUGGESTIONS, PICTURE_SUGGESTION];

  async function findPrompts(workspaceId: string, channelIds: readonly string[]): Promise<readonly Suggestion[]> {
    for (const channelId of channelIds) {
      const own = (await deps.readPersona?.({ platform: PLATFORM, workspaceId, channelId }))?.prompts;
      if (own !== undefined) return own.map((message) => ({ title: toTitle(message), message }));
    }
    return usual;
  }

  return {
    async suggest(workspace, { channelId, threadTs, lookingAt }) {
      if (withoutAgents.has(workspace.teamId)) return;
      const prompts = await findPrompts(workspace.teamId, [...(lookingAt === undefined ? [] : [lookingAt]), channelId]);
      const place = { channel_id: channelId, ...(threadTs !== undefined && { thread_ts: threadTs }) };
      try {
        const signal = AbortSignal.timeout(SUGGEST_MS);
        await deps.api.call(workspace.teamId, "assistant.threads.setSuggestedPrompts", { ...place, prompts }, signal);
      } catch (error) {
        const code = codeOf(error);
        if (isNoAgent(error)) withoutAgents.add(workspace.teamId);
        deps.log.info({ code, team: workspace.teamId }, "Could not show suggested prompts.");
      }
    },
    async onStopped(event, workspace) {
      const parsed = stopped.safeParse(event);
      // Does not reject, because Slack would only send the same payload again.
      if (!parsed.success) return NOTHING;
      const { channel, user, thread_ts: threadTs, event_ts, streaming_message_ts: streams } = parsed.data;
      // Looks the turns up, because a growing stream has no buttons that name its turn.
      const turns = streams.map((ts) =>
        deps.findTurn(toMessageId({ teamId: workspace.teamId, channelId: channel, ts })),
      );
      const turnIds = new Set((await Promise.all(turns)).filter((turnId) => turnId !== undefined));
      const toBase = (turnId: string) => {
        const name = `stopped:${channel}:${event_ts}:${turnId}`;
        const userAction: UserAction = { workspace, person: { id: user }, channelId: channel, threadTs, name };
        return toEventBase(userAction, { isPrivate: true }, deps);
      };
      const toActionEvent = async (turnId: string): Promise<ActionEvent> => {
        return { kind: "action", ...(await toBase(turnId)), action: "stop", turnId };
      };
      // A turn that has stored no message yet can only be found by its thread.
      const toCommandEvent = async (): Promise<CommandEvent> => {
        return { kind: "command", ...(await toBase("")), name: "stop", text: "" };
      };
      if (turnIds.size === 0) return { events: [await toCommandEvent()] };
      return { events: await Promise.all([...turnIds].map(toActionEvent)) };
    },
  };
}

function toTitle(message: string): string {
  return truncate(message, MAX_TITLE_CHARS).replace(/\s+…$/, "…");
}
