import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command, message } from "../../lab/support/events.ts";
import { fakeGateway } from "../../lab/support/fake-gateway.ts";
import { models as section } from "../../src/config/policy/models.ts";
import { type Policy, policySchema } from "../../src/config/policy/policy-file.ts";
import { createAccess } from "../../src/policy/access.ts";
import { createModels, type LimitLeft } from "../../src/policy/models.ts";

const by = (kind?: "guest", channelId = "c") => {
  const { author, reply } = message("hello");
  return { author: { ...author, ...(kind && { kind }) }, reply: { ...reply, channelId } };
};
const toPolicy = (given: unknown) => policySchema.parse(given) as Policy;

function start(models: unknown, budget?: LimitLeft) {
  const policy = toPolicy({ models });
  return createModels({ policy: () => policy, model: "large", readScarcestLimit: async () => budget });
}

const OFFERED = {
  offered: [
    { to: "guests", models: ["small", "tiny-*"] },
    { in: "channel:lab", models: ["*"], default: "new" },
    { models: ["large", "small"] },
  ],
};

describe("models offered per channel and per group", () => {
  test("the bot offers all models if the policy does not restrict them", async () => {
    const models = start(undefined);
    expect(models.isOffered("anything", by())).toBe(true);
    expect(await models.choose(undefined, by())).toEqual({ model: "large" });
    expect(await models.choose("own", by())).toEqual({ model: "own" });
  });

  test("the offered models are those of the first rule that matches", () => {
    const { isOffered } = start(OFFERED);
    const offered = (who: ReturnType<typeof by>) =>
      ["large", "small", "tiny-2", "new"].filter((model) => isOffered(model, who));
    expect(offered(by())).toEqual(["large", "small"]);
    expect(offered(by("guest"))).toEqual(["small", "tiny-2"]);
    expect(offered(by("guest", "lab"))).toEqual(["small", "tiny-2"]);
    expect(offered(by(undefined, "lab"))).toEqual(["large", "small", "tiny-2", "new"]);
  });

  test("the offer decides which model answers if a channel has chosen none", () => {
    const { usual } = start(OFFERED);
    expect([usual(by()), usual(by("guest")), usual(by(undefined, "lab"))]).toEqual(["large", "small", "new"]);
  });

  test("the offer overrides a channel's choice, and the answer says so", async () => {
    expect(await start(OFFERED).choose("large", by("guest"))).toEqual({
      model: "small",
      notice: "_Answered by `small`: `large`, this channel's model, isn't available to you here._",
    });
  });
});

describe("the cheaper model of a policy", () => {
  const cheaper = { cheaper: { model: "small", below: 25 } };
  const budget = (left: number) => ({ left, limit: "Your limit of 10,000 tokens per day" });

  test("the cheaper model does not answer if enough of the limit is left, without a limit, or if the channel chose a model", async () => {
    expect(await start(cheaper, budget(0.25)).choose(undefined, by())).toEqual({ model: "large" });
    expect(await start(cheaper).choose(undefined, by())).toEqual({ model: "large" });
    expect(await start(cheaper, budget(0.1)).choose("own", by())).toEqual({ model: "own" });
    const notOffered = start({ ...OFFERED, cheaper: { model: "mini" } }, budget(0));
    expect(await notOffered.choose(undefined, by())).toEqual({ model: "large" });
  });
});

describe("model offers in the bot", () => {
  test("/model lists and sets only the models that are offered to the person", async () => {
    const { gateway } = fakeGateway(["Hello."]);
    const listing = { ...gateway, listModels: async () => ["large", "small", "new"] };
    const policy = toPolicy({ models: OFFERED });
    const { handle, texts } = startEngine({ gateway: listing, model: "large", policy: () => policy });
    await handle(command("model", ""));
    expect(texts().at(-1)).toMatch(/choose from `large`, `small`\./);
    await handle(command("model", "new"));
    expect(texts().at(-1)).toContain("has no chat model `new`");
  });

  test("the cheaper model answers once little is left of a limit", async () => {
    const policy = toPolicy({
      quotas: { person: { day: { tokens: 1_000 } }, answerTokens: 100 },
      models: { cheaper: { model: "small", below: 99 } },
    });
    const { handle, requests, texts } = startEngine({ model: "large", policy: () => policy });
    for (const words of ["First?", "Second?"]) {
      await handle(message(words));
    }
    expect(requests.map(({ model }) => model)).toEqual(["large", "small"]);
    expect(texts().at(-1)).toContain(
      "_Answered by `small`, which costs less: your limit of 1,000 tokens per day is nearly used up._",
    );
  });
});

test("the policy reports every mistake in the models section", () => {
  const problems = (value: unknown) => section.safeParse(value).error?.issues.map(({ path }) => path.join(".")) ?? [];
  expect(problems({ offered: [{ models: ["*"] }] })).toEqual(["offered.0.models"]);
  expect(problems({ offered: [{ models: [] }, { models: ["a"], to: "nobody" }] })).toEqual([
    "offered.0.models",
    "offered.1.to",
  ]);
  expect(problems({ cheaper: { below: 0 } })).toEqual(["cheaper.model", "cheaper.below"]);
});

test("the bot looks up groups in model offers like those in access rules", async () => {
  const policy = toPolicy({ models: { offered: [{ to: ["group:S1", "guests"], models: ["small"] }] } });
  const access = createAccess({ policy: () => policy, chatRules: { read: async () => [] } });
  expect(await access.namedGroups()).toEqual(["S1"]);
});
