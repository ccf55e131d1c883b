import { z } from "zod";

/** The time windows, shortest first. All of them follow UTC. */
export const WINDOWS = ["minute", "hour", "day", "month"] as const;
export const SCOPES = ["person", "channel", "workspace", "all"] as const;
export const MEASURES = ["tokens", "requests", "pictures", "money"] as const;

export type QuotaWindow = (typeof WINDOWS)[number];
export type QuotaScope = (typeof SCOPES)[number];
export type QuotaMeasure = (typeof MEASURES)[number];

/** With a smaller limit, nearly every answer would be truncated. */
const MIN_ANSWER_TOKENS = 16;
const MAX_ANSWER_TOKENS = 1_000_000;
/** Sums are counted in billionths of a currency unit; above this limit, they would no longer be exact. */
const MAX_MONEY = 1_000_000;

const count = z.int("must be a whole number").min(0, "must not be less than 0").describe("The maximum; 0 allows none.");

const amounts = z
  .strictObject(
    {
      tokens: count.exactOptional().describe("Tokens of prompts and answers together, not counting those of images."),
      requests: count.exactOptional().describe("Requests to the gateway; an answer that uses tools needs several."),
      pictures: count.exactOptional().describe("Images that are created."),
      money: z
        .number("must be a number")
        .min(0, "must not be less than 0")
        .max(MAX_MONEY, `must not be more than ${MAX_MONEY}`)
        .exactOptional()
        .describe("In the currency of `prices`."),
    },
    "must be an object of amounts, such as { tokens: 100000 }",
  )
  .refine((given) => Object.keys(given).length > 0, `must name at least one of ${MEASURES.join(", ")}`);

const windows = z.strictObject(
  {
    minute: amounts.exactOptional().describe("Stops scripts, and bots that answer each other."),
    hour: amounts.exactOptional(),
    day: amounts.exactOptional(),
    month: amounts.exactOptional(),
  },
  `must be an object with some of ${WINDOWS.join(", ")}`,
);

export const quotas = z
  .strictObject(
    {
      person: windows.exactOptional().describe("For each person."),
      channel: windows.exactOptional().describe("For each channel, with its threads."),
      workspace: windows.exactOptional().describe("For each workspace or server of a platform."),
      all: windows.exactOptional().describe("For everyone together."),
      answerTokens: z
        .int("must be a whole number")
        .min(MIN_ANSWER_TOKENS, `must not be less than ${MIN_ANSWER_TOKENS}`)
        .max(MAX_ANSWER_TOKENS, `must not be more than ${MAX_ANSWER_TOKENS}`)
        .exactOptional()
        .describe(
          "If tokens or money are limited: the maximum length of an answer, in tokens. This amount is reserved before each request. Default: 4096.",
        ),
    },
    "must be an object",
  )
  .describe("How much people can use. Each count restarts when its period begins, in UTC.");

export type Quotas = z.output<typeof quotas>;
