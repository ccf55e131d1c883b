import { z } from "zod";
import { parseStored } from "../store/values.ts";

/** Maximum number of steps in a story. Further steps are cut from its middle. */
export const MAX_STEPS = 60;

const step = z.object({
  /** Unix milliseconds. */
  at: z.number(),
  /** In the bot's own words, never text from people or the model. */
  what: z.string(),
  isBad: z.literal(true).exactOptional(),
});

/**
 * What happened in a turn, from the question to the end. Contains the asker's name, but no text from the conversation.
 */
export const story = z.object({
  v: z.literal(1),
  /** Unique for each end of a turn, because a turn can restart and end again. */
  id: z.string(),
  turnId: z.string(),
  conversationId: z.string(),
  reply: z.looseObject({ platform: z.string(), channelId: z.string() }),
  author: z.object({ id: z.string(), name: z.string() }),
  /** Name of the process that ran the turn, as the dashboard shows it. */
  process: z.string(),
  model: z.string(),
  /** The platform's time of the question in Unix milliseconds, like the times below. */
  acceptedAt: z.number(),
  beganAt: z.number(),
  firstTokenAt: z.number().exactOptional(),
  firstVisibleAt: z.number().exactOptional(),
  endedAt: z.number().exactOptional(),
  state: z.string(),
  /** How far the visible text is behind the model's text, in milliseconds. */
  lagMs: z.number(),
  longestLagMs: z.number(),
  /** Lengths of the model's text and of its visible part, in UTF-16 units. */
  written: z.number(),
  shown: z.number(),
  messages: z.number(),
  retries: z.number(),
  tokens: z.object({ prompt: z.number(), completion: z.number(), estimated: z.number() }),
  tools: z.array(z.object({ name: z.string(), tookMs: z.number().exactOptional(), state: z.string() })),
  outcome: z.string().exactOptional(),
  /** The last sentence that users saw. */
  note: z.string().exactOptional(),
  steps: z.array(step),
});

export type Story = z.infer<typeof story>;

/** Returns undefined for a story that is damaged or has another version. */
export function readStory(text: string): Story | undefined {
  return parseStored(story, text);
}
