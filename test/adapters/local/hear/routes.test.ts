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
    authorId: "ada",
    channelId: "chat-1",
    threadId: null,
    fileIds: [],
    isNewChat: true,
  };

  test.for([
    [{ ...send, text: "   " }, "The message is empty."],
    [{ ...send, text: "x".repeat(20_001) }, "A message has at most 20,000 characters; send the rest as a file."],
    [{ ...send, text: "a\0b" }, "The text holds characters that are no text."],
    [{ ...send, text: "\ud800" }, "The text holds characters that are no text."],
    [{ ...send, text: "x", nonce: "short" }, "The nonce of a request is 8 to 64 letters, digits, - or _."],
    [{ ...send, text: "x", channelId: "a:b" }, "That is not an id of this page."],
    [{ ...send, text: 7 }, "The field text is missing or wrong."],
    [{ ...send }, "The field text is missing or wrong."],
    [{ ...send, text: "x", fileIds: Array.from({ length: 11 }, () => "f") }, "At most 10 files fit in one message."],
    [{ ...send, text: "/imagine x", options: { ratio: 7 } }, "The field options.ratio is missing or wrong."],
    [null, "The field  is missing or wrong."],
  ] as const)("say what is wrong with %j", async ([body, error]) => {
    expect(await problem("/local/messages", body)).toEqual({ status: 400, error });
    expect(page.events).toEqual([]);
  });

  test("a body that is not JSON is refused", async () => {
    const headers = { Origin: page.url, "Content-Type": "application/json" };
    const response = await fetch(`${page.url}/local/messages`, { method: "POST", headers, body: "{" });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: "The request is not JSON." });
  });

  test("a text of the greatest length is taken", async () => {
    expect(await page.send({ text: "あ".repeat(20_000) })).toBeGreaterThan(0);
  });

  test("people and channels are added, each name once", async () => {
    expect((await page.post("/local/people", { name: " Grace Hopper " })).status).toBe(200);
    expect(await problem("/local/people", { name: "grace hopper" })).toEqual({
      status: 409,
      error: "Somebody is called grace hopper already.",
    });
    expect(await problem("/local/people", { name: "palaver" })).toMatchObject({ status: 409 });
    expect((await page.post("/local/channels", { name: "#Design Team" })).status).toBe(200);
    expect(await problem("/local/channels", { name: "design team" })).toMatchObject({ status: 409 });
    const rows = await page.rows();
    expect(rows).toContainEqual(expect.objectContaining({ type: "person", name: "Grace Hopper" }));
    expect(rows).toContainEqual(expect.objectContaining({ type: "channel", kind: "channel", title: "design-team" }));
  });

  test.for(["", "  ", "a@b", "x".repeat(41), "line\nbreak", "bidi\u202e"])("refuse the name %j", async (name) => {
    expect(await problem("/local/people", { name })).toMatchObject({ status: 400 });
  });

  test.for(["/local/messages/0/edit", "/local/messages/x/edit", "/local/messages/1e3/delete"])(
    "know no %s",
    async (path) => {
      expect(await problem(path, { nonce: "12345678", authorId: "ada", text: "x" })).toMatchObject({ status: 404 });
    },
  );
});

describe("the requests of the form for pictures", () => {
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

  test("the form for pictures is given its menu, with the models at the moment", async () => {
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

  test("the form for pictures is given its menu without models while nobody can tell them", async () => {
    const listModels = () => Promise.reject(new Error("the gateway is away"));
    const { status, body } = await get("menu", { imagine: { ...fakeMenu(), listModels } });
    expect([status, body]).toEqual([200, expect.objectContaining({ maxCount: 4, models: [] })]);
  });

  test("the form for pictures is given how a picture was asked for", async () => {
    const wish = { prompt: "a fox", options: { ratio: "16:9", basis: "job.2" } };
    expect(await get("job.2?authorId=ada&channelId=general", { imagine: fakeMenu({ "job.2": wish }) })).toEqual({
      status: 200,
      body: wish,
    });
  });

  test("a picture that is not kept any more and a store that does not answer are told in a sentence", async () => {
    expect(await get("job.9?authorId=ada&channelId=general", { imagine: fakeMenu() })).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining("too old") },
    });
    await page?.close();
    const describe = () => Promise.reject(new Error("secret of the store"));
    const { status, body } = await get("job.9?authorId=ada&channelId=general", {
      imagine: { ...fakeMenu(), describe },
    });
    expect([status, JSON.stringify(body)]).toEqual([503, expect.not.stringContaining("secret")]);
  });

  test("a picture is described in the name of who speaks, and for where they are", async () => {
    const asked: unknown[] = [];
    const describe: ImagineMenu["describe"] = async (...args) => void asked.push(args);
    await get("job.2?authorId=ben&channelId=general", { imagine: { ...fakeMenu(), describe } });
    const by = { author: { id: "ben" }, reply: { platform: "local", channelId: "general" } };
    expect(asked).toMatchObject([["job.2", by, {}]]);
    await page?.close();
    const { status } = await get("job.2?authorId=nobody&channelId=general", { imagine: { ...fakeMenu(), describe } });
    expect([status, asked.length]).toEqual([400, 1]);
  });

  test("nothing is served for pictures where there is no form", async () => {
    page = await startLocalPage();
    expect((await fetch(`${page.url}/local/pictures/menu`)).status).toBe(404);
  });
});
