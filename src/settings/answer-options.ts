import { z } from "zod";

/** Options of a channel's answers. The gateway's own default holds for an absent one. */
export const answerOptions = z.object({
  temperature: z.number().min(0).max(2).exactOptional(),
  /** Greatest length of an answer, what is thought before it included. */
  maxTokens: z.int().min(1).exactOptional(),
  format: z.literal("json").exactOptional(),
  /** The model's thoughts are shown, folded, before its answer. */
  thinking: z.literal("shown").exactOptional(),
  /** Number of the channel's last messages that a question there brings along. */
  context: z.int().min(0).max(100).exactOptional(),
});

export type AnswerOptions = z.infer<typeof answerOptions>;

/** An option that is there and undefined is taken back. */
export type OptionChanges = { [Name in keyof AnswerOptions]?: AnswerOptions[Name] | undefined };

/** Undefined where none is left. */
export function changeOptions(before: AnswerOptions, changes: OptionChanges): AnswerOptions | undefined {
  const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : answerOptions.parse(Object.fromEntries(entries));
}

/** Ends a sentence; "" where all is as usual. */
export function describeOptions({ temperature, maxTokens, format, thinking, context }: AnswerOptions = {}): string {
  const parts = [
    ...(temperature === undefined ? [] : [`with temperature ${temperature}`]),
    ...(maxTokens === undefined ? [] : [`in at most ${maxTokens} tokens`]),
    ...(format === undefined ? [] : ["as JSON"]),
    ...(thinking === undefined ? [] : ["with what the model thinks shown before"]),
    ...(context === undefined ? [] : [describeContext(context)]),
  ];
  return parts.join(", ");
}

function describeContext(count: number): string {
  if (count === 0) return "without what was said in the channel before";
  return `knowing the last ${count === 1 ? "message" : `${count} messages`} of the channel`;
}
