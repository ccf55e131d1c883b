import { z } from "zod";

const MAX_PRICE = 1_000_000;

const price = z
  .number("must be a number")
  .min(0, "must not be less than 0")
  .max(MAX_PRICE, `must not be more than ${MAX_PRICE}`);

const modelPrices = z
  .strictObject(
    {
      input: price.exactOptional().describe("Per million tokens of the prompt."),
      cachedInput: price
        .exactOptional()
        .describe("Per million of these that came from the gateway's cache. Default: the price of `input`."),
      output: price.exactOptional().describe("Per million tokens of the answer."),
      picture: price.exactOptional().describe("Per image. Default: the price of its tokens."),
    },
    "must be an object of prices, such as { input: 2.5, output: 10 }",
  )
  .refine((given) => Object.keys(given).length > 0, "must name at least one price");

export const prices = z
  .strictObject(
    {
      currency: z
        .string("must be the three letters of a currency, such as USD")
        .regex(/^[A-Z]{3}$/, "must be the three letters of a currency, such as USD"),
      models: z
        .record(z.string(), modelPrices, "must be an object of models and their prices")
        .describe('Prices by model name; "*" is for all others.'),
    },
    "must be an object",
  )
  .describe("The gateway's prices. A cost that the gateway reports takes precedence.");

export type Prices = z.output<typeof prices>;
export type ModelPrices = z.output<typeof modelPrices>;
