import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ImagineMenu } from "../../../../src/port/catalogue.ts";
import { fakeMenu, type LocalPage, type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

describe("the requests of the local page", () => {
  let page: LocalPage;

  beforeEach(async () => {
    page = await startLocalPage();
  });
  afterEach(() => page.close());

  async function problem(path: string, body: unknown): Promise<{ status: number; error: string }> {
    const response = await page.post(path, body);
    return { status: response.status, ...((await response.json()) as { error: string }) };
  }

  const send = {
    nonce: "12345678",
    chatId: "chat-1",
    fileIds: [],
    isNewChat: true,
  };

  test.for([
    [{ ...send, text: "   " }, "The message is empty."],
    [{ ...send, text: "x".repeat(20_001) }, "A message can have at most 20,000 characters; send the rest as a file."],
    [{ ...send, text: "a\0b" }, "The text contains invalid characters."],
    [{ ...send, text: "\ud800" }, "The text contains invalid characters."],
    [{ ...send, text: "x", nonce: "short" }, "The nonce of a request must be 8 to 64 letters, digits, - or _."],
    [{ ...send, text: "x", chatId: "a:b" }, "This id is not valid."],
    [{ ...send, text: 7 }, "The field text is missing or wrong."],
    [{ ...send }, "The field text is missing or wrong."],
    [{ ...send, text: "x", fileIds: Array.from({ length: 11 }, () => "f") }, "At most 10 files fit in one message."],
    [{ ...send, text: "/imagine x", options: { ratio: 7 } }, "The field options.ratio is missing or wrong."],
    [null, "The field  is missing or wrong."],
  ] as const)("the page says what is wrong with %j", async ([body, error]) => {
    expect(await problem("/local/messages", body)).toEqual({ status: 400, error });
    expect(page.events).toEqual([]);
  });

  test("the page refuses a body that is not JSON", async () => {
    const headers = { Origin: page.url, "Content-Type": "application/json" };
    const response = await fetch(`${page.url}/local/messages`, { method: "POST", headers, body: "{" });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: "The request is not JSON." });
  });

  test("the page accepts the longest allowed text", async () => {
    expect(await page.send({ text: "あ".repeat(20_000) })).toBeGreaterThan(0);
  });

  test.for(["/local/messages/0/edit", "/local/messages/x/edit", "/local/messages/1e3/delete"])(
    "the routes of the page reject %s",
    async (path) => {
      expect(await problem(path, { nonce: "12345678", text: "x" })).toMatchObject({ status: 404 });
    },
  );
});

describe("the requests of the form for images", () => {
  let page: LocalPage | undefined;

  async function get(path: string, options: LocalPageOptions): Promise<{ status: number; body: unknown }> {
    page = await startLocalPage(options);
    const response = await fetch(`${page.url}/local/pictures/${path}`);
    return { status: response.status, body: await response.json() };
  }

  afterEach(async () => {
    await page?.close();
    page = undefined;
  });

  test("the form for images gets its menu with the current models", async () => {
    expect(await get("menu", { imagine: fakeMenu() })).toEqual({
      status: 200,
      body: {
        ratios: ["1:1", "16:9", "9:16"],
        sizes: ["1K", "2K"],
        maxCount: 4,
        maxReferences: 3,
        models: ["usual-image", "other-image"],
      },
    });
  });

  test("the form for images gets its menu without models while the gateway does not list them", async () => {
    const listModels = () => Promise.reject(new Error("the gateway is away"));
    const { status, body } = await get("menu", { imagine: { ...fakeMenu(), listModels } });
    expect([status, body]).toEqual([200, expect.objectContaining({ maxCount: 4, models: [] })]);
  });

  test("the form for images gets the request of an existing image", async () => {
    const wish = { prompt: "a fox", options: { ratio: "16:9", basis: "job.2" } };
    expect(await get("job.2?chatId=chat-1", { imagine: fakeMenu({ "job.2": wish }) })).toEqual({
      status: 200,
      body: wish,
    });
  });

  test("the form for images reports in a sentence that a request is too old or that the store does not answer", async () => {
    expect(await get("job.9?chatId=chat-1", { imagine: fakeMenu() })).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining("too old") },
    });
    await page?.close();
    const describe = () => Promise.reject(new Error("secret of the store"));
    const { status, body } = await get("job.9?chatId=chat-1", {
      imagine: { ...fakeMenu(), describe },
    });
    expect([status, JSON.stringify(body)]).toEqual([503, expect.not.stringContaining("secret")]);
  });

  test("the page shows an image's request only to its own person in the open chat", async () => {
    const asked: unknown[] = [];
    const describe: ImagineMenu["describe"] = async (...args) => void asked.push(args);
    await get("job.2?chatId=chat-1", { imagine: { ...fakeMenu(), describe } });
    const by = { author: { id: "you" }, reply: { platform: "local", channelId: "chat-1" } };
    expect(asked).toMatchObject([["job.2", by, {}]]);
  });

  test("the page has no routes of the form for images without a form", async () => {
    page = await startLocalPage();
    expect((await fetch(`${page.url}/local/pictures/menu`)).status).toBe(404);
  });
});
