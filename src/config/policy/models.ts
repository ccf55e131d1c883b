import { z } from "zod";
import { accessRule } from "./access.ts";

const MAX_NAME_CHARS = 100;
const MAX_MODELS = 100;
const MAX_RULES = 200;
/** The default percentage: a limit counts as nearly reached if less than this is left. */
const USUAL_SHARE = 20;

const name = z
  .string("must be the name of a model")
  .regex(new RegExp(`^[^\\s*]{1,${MAX_NAME_CHARS}}$`), "must be the name of a model, without spaces or *");
const pattern = z
  .string("must be the name of a model")
  .regex(new RegExp(`^\\S{1,${MAX_NAME_CHARS}}$`), "must be the name of a model; * matches any characters");

const offer = z
  .strictObject({
    to: accessRule.shape.to.describe("The people who can use them. Default: everyone."),
    in: accessRule.shape.in.describe("The places to use them in. Default: everywhere."),
    models: z.array(pattern).min(1, "must name a model").max(MAX_MODELS).describe("* matches any characters."),
    default: name
      .exactOptional()
      .describe("Answers in channels that have chosen no model. Default: the first of `models`."),
  })
  .refine(({ models, default: usual }) => usual !== undefined || !models[0]?.includes("*"), {
    path: ["models"],
    message: "must start with a name without *, or default must be set",
  });

export type ModelOffer = z.output<typeof offer>;

export const models = z
  .strictObject({
    offered: z
      .array(offer)
      .max(MAX_RULES)
      .exactOptional()
      .describe("Models for conversations, as a list of rules: the first that matches decides."),
    cheaper: z
      .strictObject({
        model: name.describe("Answers in channels that have chosen no model, while little of the budget is left."),
        below: z
          .number("must be a number")
          .min(1, "must be from 1 to 99")
          .max(99, "must be from 1 to 99")
          .default(USUAL_SHARE)
          .describe(
            "It answers when less than this percentage of an hourly, daily or monthly token or money limit is left.",
          ),
      })
      .exactOptional()
      .describe("A cheaper model while a budget is nearly used up."),
  })
  .describe("Which models people can choose for conversations.");
