import { z } from "zod";
import type { Viewer } from "../../../src/port/catalogue.ts";
import { readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM } from "../ids.ts";
import { toIdentity } from "./people.ts";

export function toViewer(workspace: Workspace, userId: string, threadTs: string | undefined): Viewer {
  const { id: authorId } = toIdentity(workspace, userId);
  return { platform: PLATFORM, authorId, ...(threadTs !== undefined && { threadId: threadTs }) };
}

const told = z.object({
  /** From the older assistant: https://docs.slack.dev/reference/events/assistant_thread_context_changed */
  channel_id: z.string().optional(),
  /** Most relevant first: https://docs.slack.dev/reference/events/app_context_changed */
  entities: z.array(z.object({ type: z.string(), value: z.unknown() })).default([]),
});

/** The id of the channel that somebody looks at; undefined where the context names none. */
export function readLookedAt(context: unknown): string | undefined {
  const { channel_id: channelId, entities = [] } = told.safeParse(context).data ?? {};
  const found = entities.map(({ type, value }) => {
    if (type === "slack#/types/channel_id") return value;
    return type === "slack#/types/message_context" ? toBody(value)["channel_id"] : undefined;
  });
  return [channelId, ...found].map(readText).find((id) => id !== undefined);
}
