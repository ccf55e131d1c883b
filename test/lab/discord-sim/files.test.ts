import { describe, expect, test } from "vitest";
import { startGuild } from "../../support/discord.ts";

const DAY_MS = 86_400_000;
const PNG = Buffer.concat([
  Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"),
  Buffer.from("0000000300000002", "hex"),
]);

async function startUpload() {
  const { discord, channel, ada, call } = await startGuild();
  const attachments = [{ name: "my cat.png", bytes: PNG }];
  const said = discord.people.say(channel, ada, "look", { attachments });
  const fetchMessage = async () => {
    const { body } = await call("GET", `/channels/${channel.id}/messages/${said.id}`);
    const [attachment] = body["attachments"] as {
      url: string;
      content_type: string;
      width: number;
      filename: string;
    }[];
    if (attachment === undefined) throw new Error("The message has no attachment.");
    return attachment;
  };
  return { discord, call, fetchMessage };
}

describe("a file's name", () => {
  test("a file's title keeps the characters that its link cannot carry", async () => {
    const { fetchMessage } = await startUpload();
    expect(await fetchMessage()).toMatchObject({ filename: "my_cat.png", title: "my cat" });
  });
});

describe("links to files", () => {
  test("links to files work without a token while they are signed, also for a part", async () => {
    const { fetchMessage } = await startUpload();
    const { url, content_type, width, filename } = await fetchMessage();
    expect([content_type, width, filename]).toEqual(["image/png", 3, "my_cat.png"]);
    const whole = await fetch(url);
    expect(Buffer.from(await whole.arrayBuffer())).toEqual(PNG);
    const part = await fetch(url, { headers: { range: "bytes=0-3" } });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 0-3/${PNG.length}`]);
    expect(Buffer.from(await part.arrayBuffer())).toEqual(PNG.subarray(0, 4));
  });

  test("links to files are refused without their signature, and with another one's expiry", async () => {
    const { fetchMessage } = await startUpload();
    const url = new URL((await fetchMessage()).url);
    expect((await fetch(url.origin + url.pathname)).status).toBe(404);
    url.searchParams.set("ex", "ffffffff");
    expect((await fetch(url)).status).toBe(404);
  });

  test("links to files expire after a day, and are fresh when a bot reads the message again", async () => {
    const { discord, fetchMessage } = await startUpload();
    const { url } = await fetchMessage();
    expect(Number.parseInt(new URL(url).searchParams.get("ex") ?? "", 16)).toBe(
      Math.floor((discord.clock.now() + DAY_MS) / 1000),
    );
    discord.clock.advance(DAY_MS);
    expect((await fetch(url)).status).toBe(404);
    expect((await fetch((await fetchMessage()).url)).status).toBe(200);
  });

  test("the bot can renew links to files", async () => {
    const { discord, call, fetchMessage } = await startUpload();
    const { url } = await fetchMessage();
    discord.clock.advance(DAY_MS);
    const { body } = await call("POST", "/attachments/refresh-urls", { attachment_urls: [url] });
    const [link] = body["refreshed_urls"] as { original: string; refreshed: string }[];
    expect(link?.original).toBe(url);
    expect((await fetch(link?.refreshed ?? "")).status).toBe(200);
  });
});
