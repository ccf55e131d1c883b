import { z } from "zod";
import { parseStored } from "../store/values.ts";

/** Maximum number of steps per story. Steps in the middle are left out. */
export const MAX_STEPS = 60;

const step = z.object({
  /** Unix milliseconds. */
  at: z.number(),
  /** In the bot's own words; never contains text from people or the model. */
  what: z.string(),
  isBad: z.literal(true).exactOptional(),
});

/** The events in a turn, from the question to the end. Names the asker, but contains no text from the conversation. */
export const story = z.object({
  v: z.literal(1),
  /** Unique for each end of a turn, because a turn can be restarted and end again. */
  id: z.string(),
  turnId: z.string(),
  conversationId: z.string(),
  reply: z.looseObject({ platform: z.string(), channelId: z.string() }),
  author: z.object({ id: z.string(), name: z.string() }),
  /** The dashboard's name for the process that wrote the story. */
  process: z.string(),
  model: z.string(),
  /** When the question was asked, according to the platform. Unix milliseconds; so are the times below. */
  acceptedAt: z.number(),
  beganAt: z.number(),
  firstTokenAt: z.number().exactOptional(),
  firstVisibleAt: z.number().exactOptional(),
  endedAt: z.number().exactOptional(),
  state: z.string(),
  /** How long the visible text is behind the model's, in milliseconds. */
  lagMs: z.number(),
  longestLagMs: z.number(),
  /** Lengths of the model's text and its visible part, in UTF-16 units. */
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

/** Undefined for a story that is damaged or has another version. */
export function readStory(text: string): Story | undefined {
  return parseStored(story, text);
}
