import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { ask, post, refusalOf, start } from "./sandbox.ts";

const IMAGE = { contents: [{ parts: [{ text: "a star" }] }] };
const noKey = { "content-type": "application/json" };

describe("the authentication of the sandbox", () => {
  test("every request carries the key in Authorization: Bearer", async () => {
    const sandbox = await start();
    const withoutKey = await refusalOf(fetch(`${sandbox.url}/v1/models`));
    expect(withoutKey).toMatchObject({
      status: 401,
      type: "authentication_error",
      code: "missing_api_key",
      param: null,
    });
    const response = await fetch(`${sandbox.url}/v1/models`, { headers: { authorization: "Bearer sk-sandbox-all" } });
    expect(response.status).toBe(200);
  });

  test.each(["Bearer sk-unknown", "Basic c2s6", "sk-sandbox-all", "Bearer", "Bearer sk-sandbox-all x"])(
    "the sandbox refuses Authorization: %s",
    async (authorization) => {
      const sandbox = await start();
      const refusal = await refusalOf(ask(sandbox, "hi", {}, { authorization }));
      expect(refusal).toMatchObject({ status: 401, type: "authentication_error", code: "invalid_api_key" });
      expect(refusal.message).not.toMatch(/sk-/);
    },
  );

  test("the sandbox refuses a key that a request sends twice", async () => {
    const sandbox = await start();
    const status = await new Promise((resolve, reject) => {
      const headers = [
        "authorization",
        "Bearer sk-sandbox-all",
        "authorization",
        "Bearer sk-sandbox-chat",
        "host",
        "x",
      ];
      httpRequest(`${sandbox.url}/v1/models`, { headers }, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end();
    });
    expect(status).toBe(401);
  });

  test("the chat endpoint accepts no other header", async () => {
    const sandbox = await start();
    const headers = { ...noKey, "x-sandbox-api-key": "sk-sandbox-all" };
    const body = JSON.stringify({ model: "sandbox-chat", messages: [{ role: "user", content: "hi" }] });
    const response = await fetch(`${sandbox.url}/v1/chat/completions`, { method: "POST", headers, body });
    expect(response.status).toBe(401);
  });

  test("the image endpoint answers 401 to the header-only key as Bearer, and accepts it in the vendor header", async () => {
    const sandbox = await start();
    const url = `${sandbox.url}/v1beta/models/sandbox-image:generateContent`;
    const refusal = await refusalOf(post(url, IMAGE, { authorization: "Bearer sk-sandbox-header" }));
    expect(refusal).toMatchObject({ status: 401, type: "authentication_error" });
    const headers = { ...noKey, "x-goog-api-key": "sk-sandbox-header" };
    expect((await fetch(url, { method: "POST", headers, body: JSON.stringify(IMAGE) })).status).toBe(200);
  });

  test("a key header takes precedence over Authorization, and the sandbox refuses two key headers", async () => {
    const sandbox = await start();
    const url = `${sandbox.url}/v1beta/models/sandbox-image:generateContent`;
    for (const header of ["x-sandbox-api-key", "x-goog-api-key"]) {
      expect((await post(url, IMAGE, { [header]: "sk-sandbox-header" })).status).toBe(200);
      expect(await refusalOf(post(url, IMAGE, { [header]: "sk-wrong" }))).toMatchObject({ status: 401 });
    }
    const both = { "x-sandbox-api-key": "sk-sandbox-header", "x-goog-api-key": "sk-sandbox-all" };
    expect(await refusalOf(post(url, IMAGE, both))).toMatchObject({ status: 401, code: "ambiguous_api_key" });
  });
});

describe("the permissions of the sandbox's models", () => {
  test("the error shortens a long model name", async () => {
    const sandbox = await start();
    const { message } = await refusalOf(ask(sandbox, "hi", { model: "m".repeat(100_000) }));
    expect(message.length).toBeLessThan(300);
  });

  test("the status for a model of the other endpoint is 400", async () => {
    const sandbox = await start();
    expect(await refusalOf(ask(sandbox, "hi", { model: "sandbox-image" }))).toMatchObject({
      status: 400,
      code: "model_not_supported",
    });
    const url = `${sandbox.url}/v1beta/models/sandbox-chat:generateContent`;
    expect(await refusalOf(post(url, IMAGE))).toMatchObject({ status: 400, code: "model_not_supported" });
  });

  test("sandbox-text refuses tools and images, and answers text", async () => {
    const sandbox = await start();
    const model = "sandbox-text";
    const tools = [{ type: "function", function: { name: "a", parameters: { type: "object" } } }];
    expect(await refusalOf(ask(sandbox, "hi", { model, tools }))).toMatchObject({ status: 400, param: "tools" });
    const parts = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }];
    expect(await refusalOf(ask(sandbox, parts, { model }))).toMatchObject({
      status: 400,
      param: "messages[0].content",
    });
    expect((await ask(sandbox, "hi", { model })).status).toBe(200);
  });
});
