import { z } from "zod";
import { accessRule } from "./access.ts";

const MAX_NAME_CHARS = 100;
const MAX_MODELS = 100;
const MAX_RULES = 200;
/** Percent of a limit: below that it is nearly used up. */
const USUAL_SHARE = 20;

const name = z
  .string("must be the name of a model")
  .regex(new RegExp(`^[^\\s*]{1,${MAX_NAME_CHARS}}$`), "must be the name of a model, without blanks and *");
const pattern = z
  .string("must be the name of a model")
  .regex(new RegExp(`^\\S{1,${MAX_NAME_CHARS}}$`), "must be the name of a model, in which * stands for any letters");

const offer = z
  .strictObject({
    to: accessRule.shape.to.describe("Whom it is offered to; absent: everybody."),
    in: accessRule.shape.in.describe("Where; absent: everywhere."),
    models: z.array(pattern).min(1, "must name a model").max(MAX_MODELS).describe("* stands for any letters."),
    default: name.exactOptional().describe("Answers where a channel has chosen none; absent: the first of `models`."),
  })
  .refine(({ models, default: usual }) => usual !== undefined || !models[0]?.includes("*"), {
    path: ["models"],
    message: "must begin with a name without *, or default must be set",
  });

export type ModelOffer = z.output<typeof offer>;

export const models = z
  .strictObject({
    offered: z
      .array(offer)
      .max(MAX_RULES)
      .exactOptional()
      .describe("Models for conversations, in the order of rules: the first that matches says which there are."),
    cheaper: z
      .strictObject({
        model: name.describe("Answers where a channel has chosen none, and little is left."),
        below: z
          .number("must be a number")
          .min(1, "must be from 1 to 99")
          .max(99, "must be from 1 to 99")
          .default(USUAL_SHARE)
          .describe("Percent that is left of a limit of tokens or money per hour, day or month."),
      })
      .exactOptional()
      .describe("A cheaper model while a budget is nearly used up."),
  })
  .describe("Which models there are for conversations.");
