/** Schemas for Slack's payloads about everything that people do, except writing messages. */
import { z } from "zod";

const id = z.string().min(1);
const person = z.object({
  id,
  name: z.string().optional(),
  username: z.string().optional(),
  team_id: z.string().optional(),
});
const channel = z.object({ id });
/** A short-lived id that can open a form. */
const trigger = z.string().default("");
const message = z.object({
  ts: id,
  thread_ts: z.string().optional(),
  user: z.string().optional(),
  text: z.string().default(""),
  files: z.array(z.record(z.string(), z.unknown())).default([]),
  blocks: z.array(z.record(z.string(), z.unknown())).default([]),
  attachments: z.array(z.record(z.string(), z.unknown())).default([]),
  bot_id: z.string().optional(),
  username: z.string().optional(),
  bot_profile: z.object({ name: z.string().optional() }).optional(),
});

export const commandPayload = z.object({
  command: id,
  text: z.string().default(""),
  channel_id: id,
  user_id: id,
  user_name: z.string().default(""),
  team_id: z.string().optional(),
  response_url: z.string().optional(),
  trigger_id: trigger,
});

export const buttonPayload = z.object({
  user: person,
  channel: channel.optional(),
  container: z
    .object({
      message_ts: z.string().optional(),
      thread_ts: z.string().nullish(),
      channel_id: z.string().optional(),
      is_ephemeral: z.boolean().default(false),
    })
    .prefault({}),
  /** Absent for an ephemeral message. */
  message: z.object({ ts: id, thread_ts: z.string().optional() }).optional(),
  view: z.object({ callback_id: z.string().default(""), private_metadata: z.string().default("") }).optional(),
  actions: z.array(
    z.object({
      action_id: z.string(),
      value: z.string().optional(),
      selected_option: z.object({ value: z.string() }).nullish(),
      action_ts: z.string().optional(),
    }),
  ),
  response_url: z.string().optional(),
  trigger_id: trigger,
});

export const messageShortcutPayload = z.object({
  callback_id: z.string(),
  user: person,
  channel,
  message,
  response_url: z.string().optional(),
  trigger_id: trigger,
  action_ts: z.string().optional(),
});

export const shortcutPayload = z.object({ callback_id: z.string(), user: person, trigger_id: trigger });

export const submissionPayload = z.object({
  user: person,
  view: z.object({
    id,
    hash: z.string().default(""),
    callback_id: z.string(),
    private_metadata: z.string().default(""),
    state: z.object({ values: z.record(z.string(), z.record(z.string(), z.unknown())) }),
  }),
});

export type CommandPayload = z.infer<typeof commandPayload>;
export type ButtonPayload = z.infer<typeof buttonPayload>;
export type MessageShortcutPayload = z.infer<typeof messageShortcutPayload>;
export type ShortcutPayload = z.infer<typeof shortcutPayload>;
export type SubmissionPayload = z.infer<typeof submissionPayload>;
export type PayloadUser = z.infer<typeof person>;
