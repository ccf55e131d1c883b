import { afterEach, describe, expect, test } from "vitest";
import type { ImagineMenu } from "../../../../src/port/catalogue.ts";
import { fakeMenu, type LocalPage, type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

describe("what the form for pictures asks for", () => {
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

  test("is the menu, with the models at the moment", async () => {
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

  test("is the menu without models while nobody can tell them", async () => {
    const listModels = () => Promise.reject(new Error("the gateway is away"));
    const { status, body } = await get("menu", { imagine: { ...fakeMenu(), listModels } });
    expect([status, body]).toEqual([200, expect.objectContaining({ maxCount: 4, models: [] })]);
  });

  test("is how a picture was asked for", async () => {
    const wish = { prompt: "a fox", options: { ratio: "16:9", basis: "job.2" } };
    expect(await get("job.2?authorId=ada&channelId=general", { imagine: fakeMenu({ "job.2": wish }) })).toEqual({
      status: 200,
      body: wish,
    });
  });

  test("is told in a sentence where a picture is not kept any more, and where the store does not answer", async () => {
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

  test("is asked for in the name of who speaks, and for where they are", async () => {
    const asked: unknown[] = [];
    const describe: ImagineMenu["describe"] = async (...args) => void asked.push(args);
    await get("job.2?authorId=ben&channelId=general", { imagine: { ...fakeMenu(), describe } });
    const by = { author: { id: "ben" }, reply: { platform: "local", channelId: "general" } };
    expect(asked).toMatchObject([["job.2", by, {}]]);
    await page?.close();
    const { status } = await get("job.2?authorId=nobody&channelId=general", { imagine: { ...fakeMenu(), describe } });
    expect([status, asked.length]).toEqual([400, 1]);
  });

  test("is nothing where there is no form", async () => {
    page = await startLocalPage();
    expect((await fetch(`${page.url}/local/pictures/menu`)).status).toBe(404);
  });
});
