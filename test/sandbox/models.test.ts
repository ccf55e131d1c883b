import { describe, expect, test } from "vitest";
import { refusalOf, start } from "./sandbox.ts";

const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

describe("GET /v1/models", () => {
  test.each([
    ["sk-sandbox-all", ["sandbox-chat", "sandbox-text", "sandbox-image"]],
    ["sk-sandbox-chat", ["sandbox-chat", "sandbox-text"]],
    ["sk-sandbox-header", ["sandbox-chat", "sandbox-text", "sandbox-image"]],
  ])("GET /v1/models shows %s its own models and nothing else", async (key, ids) => {
    const sandbox = await start();
    const response = await fetch(`${sandbox.url}/v1/models`, withKey(key));
    const { object, data } = (await response.json()) as { object: string; data: { id: string; object: string }[] };
    expect(object).toBe("list");
    expect(data.map((model) => model.id)).toEqual(ids);
    expect(new Set(data.map((model) => model.object))).toEqual(new Set(["model"]));
  });

  test("GET /v1/models/{model} shows one model, unless the key may not use it", async () => {
    const sandbox = await start();
    const response = await fetch(`${sandbox.url}/v1/models/sandbox-image`, withKey("sk-sandbox-all"));
    expect(await response.json()).toMatchObject({ id: "sandbox-image" });
    expect(await refusalOf(fetch(`${sandbox.url}/v1/models/sandbox-image`, withKey("sk-sandbox-chat")))).toMatchObject({
      status: 403,
    });
    expect(await refusalOf(fetch(`${sandbox.url}/v1/models/gone`, withKey("sk-sandbox-all")))).toMatchObject({
      status: 404,
    });
  });

  test.each([
    ["authorization", "Bearer sk-sandbox-chat", ["models/sandbox-chat", "models/sandbox-text"]],
    ["x-goog-api-key", "sk-sandbox-header", ["models/sandbox-chat", "models/sandbox-text", "models/sandbox-image"]],
  ])("GET /v1beta/models lists the models of the key in %s, as Google does", async (header, key, names) => {
    const sandbox = await start();
    const response = await fetch(`${sandbox.url}/v1beta/models?pageSize=50`, { headers: { [header]: key } });
    const { models } = (await response.json()) as { models: { name: string; supportedGenerationMethods: string[] }[] };
    expect(models.map(({ name }) => name)).toEqual(names);
    const drawing = models.filter((model) => model.supportedGenerationMethods.includes("generateContent"));
    expect(drawing.map(({ name }) => name)).toEqual(names.filter((name) => name === "models/sandbox-image"));
    expect(await refusalOf(fetch(`${sandbox.url}/v1beta/models`))).toMatchObject({ status: 401 });
    expect(await refusalOf(fetch(`${sandbox.url}/v1beta/models/gone`, { headers: { [header]: key } }))).toMatchObject({
      status: 404,
    });
  });
});
