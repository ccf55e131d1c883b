import { z } from "zod";
import { parseStored } from "../store/values.ts";

/** Steps of a story; beyond these, what comes in between is left out. */
export const MAX_STEPS = 60;

const step = z.object({
  /** Unix milliseconds. */
  at: z.number(),
  /** In our own words: never of what people or the model said. */
  what: z.string(),
  /** Something went wrong in it. */
  isBad: z.literal(true).exactOptional(),
});

/** The course of a turn, from question to end. Names the person who asked, and holds none of the words. */
export const story = z.object({
  v: z.literal(1),
  /** Tells two tellings of one turn apart: it may be answered again. */
  id: z.string(),
  turnId: z.string(),
  conversationId: z.string(),
  reply: z.looseObject({ platform: z.string(), channelId: z.string() }),
  author: z.object({ id: z.string(), name: z.string() }),
  /** The process that wrote it, by its name on the dashboard. */
  process: z.string(),
  model: z.string(),
  /** The platform's time of the question. Unix milliseconds, here and below. */
  acceptedAt: z.number(),
  beganAt: z.number(),
  firstTokenAt: z.number().exactOptional(),
  firstVisibleAt: z.number().exactOptional(),
  endedAt: z.number().exactOptional(),
  state: z.string(),
  /** Milliseconds that the visible text is behind the model's. */
  lagMs: z.number(),
  longestLagMs: z.number(),
  /** Lengths of the model's text and of the visible part of it, in UTF-16 units. */
  written: z.number(),
  shown: z.number(),
  messages: z.number(),
  retries: z.number(),
  tokens: z.object({ prompt: z.number(), completion: z.number(), estimated: z.number() }),
  tools: z.array(z.object({ name: z.string(), tookMs: z.number().exactOptional(), state: z.string() })),
  outcome: z.string().exactOptional(),
  /** The sentence that people saw at its end. */
  note: z.string().exactOptional(),
  steps: z.array(step),
});

export type Story = z.infer<typeof story>;

/** Undefined for what is damaged, or of another version. */
export function readStory(text: string): Story | undefined {
  return parseStored(story, text);
}
