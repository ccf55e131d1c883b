import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { action, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import type { Delta } from "../../src/gateway/chunks.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { chunk, DONE, event, events, FINISH, json, ROLE, startFaultServer } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const DATA_URL = `data:image/png;base64,${PNG}`;
const PICTURE: Delta = { pictures: [DATA_URL] };
const never = new Promise<string>(() => {});

type Script = NonNullable<EngineOptions["scripts"]>[number];

const start = (scripts: EngineOptions["scripts"], more: EngineOptions = {}) =>
  startEngine({ model: "painter", ...more, ...(scripts && { scripts }) });

const pictures = ({ channel }: Pick<ReturnType<typeof fakePlatform>, "channel">) =>
  channel.filter(({ files }) => files.length > 0);
const bytesOf = (shown: ReturnType<typeof pictures>[number] | undefined) =>
  Buffer.from(shown?.files[0]?.bytes ?? []).toString("base64");
const labelsOf = (shown: ReturnType<typeof pictures>[number] | undefined) =>
  shown?.draft.buttons.map(({ action: name }) => name);

async function ask(engine: ReturnType<typeof startEngine>, text: string): Promise<void> {
  await engine.handle(message(text));
}

/** The images that the latest request names to the model. */
function seenIn({ requests }: ReturnType<typeof startEngine>): string[] {
  const content = JSON.stringify(requests.at(-1)?.messages ?? []);
  return content.match(/image was created and shown here for/g) ?? [];
}

describe("an image in a chat model's answer", () => {
  test("the bot posts and stores an image in an answer, and shows it to the model in the next question", async () => {
    const engine = start([["Here is a fox.", PICTURE], ["A red one."]]);
    await ask(engine, "draw a fox");
    const [shown] = pictures(engine);
    expect(bytesOf(shown)).toBe(PNG);
    expect(shown?.files[0]).toMatchObject({ name: "draw-a-fox.png", contentType: "image/png", altText: "draw a fox" });
    expect(shown?.draft.markdown).toBe("`draw a fox` · `painter` · for `Ada`");
    expect(engine.texts()).toContain("Here is a fox.");
    await ask(engine, "what color is it?");
    const parts = engine.requests[1]?.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
    expect(parts?.filter(({ type }) => type === "image_url")).toEqual([
      { type: "image_url", image_url: { url: DATA_URL } },
    ]);
  });

  test("the bot posts an image in an answer over HTTP, even if it is a data URL in the text", async () => {
    const images = [{ type: "image_url", image_url: { url: DATA_URL } }];
    const inText = event(chunk({ delta: { content: `A fox: ![fox](${DATA_URL})` } }));
    const answers = [event(chunk({ delta: { content: "A fox:", images } })), inText];
    for (const answer of answers) {
      const whole = events(ROLE, answer, FINISH, DONE);
      const { url } = await startFaultServer((...call) => (call[1].method === "GET" ? json(404, {}) : whole)(...call));
      const engine = start(undefined, { gateway: connect(url) });
      await ask(engine, "draw a fox");
      expect(pictures(engine).map(bytesOf)).toEqual([PNG]);
      expect(engine.texts()).toContain("A fox:");
    }
  });

  test("an answer can consist of an image without text", async () => {
    const engine = start([[PICTURE], ["Yes."]]);
    await ask(engine, "draw a fox");
    expect(pictures(engine)).toHaveLength(1);
    const answer = engine.channel.find(({ files }) => files.length === 0);
    expect(answer?.draft.markdown).toBe("_The answer is an image._");
    expect(labelsOf(answer)).not.toContain("retry");
    await ask(engine, "is that a fox?");
    expect(engine.requests[1]?.messages.some(({ content }) => content === "")).toBe(false);
    expect(seenIn(engine)).toHaveLength(1);
  });

  test("the bot posts an image that the gateway sends twice once, next to another image", async () => {
    const other = `data:image/gif;base64,${Buffer.from("GIF89a\x01\x00\x01\x00\x00\x00\x00;").toString("base64")}`;
    const engine = start([["Two.", PICTURE, { pictures: [DATA_URL, other] }]]);
    await ask(engine, "draw");
    expect(pictures(engine).map(({ files }) => files[0]?.name)).toEqual(["draw.png", "draw.gif"]);
  });

  test("an image stays if the answer breaks off after it, and Retry adds a new one", async () => {
    const cut = new GatewayError("interrupted", "cut");
    const engine = start([
      ["So far", PICTURE, cut],
      ["Whole.", PICTURE],
    ]);
    await ask(engine, "draw a fox");
    expect(pictures(engine)).toHaveLength(1);
    const answer = engine.channel.find(({ files }) => files.length === 0);
    expect(answer?.draft.markdown).toMatch(/^So far\n\n_The answer broke off before it was finished/);
    const turnId = answer?.draft.buttons.find(({ action: name }) => name === "retry")?.turnId ?? "";
    await engine.handle(action("retry", turnId));
    expect(pictures(engine)).toHaveLength(2);
  });

  test("an answer with invalid image data says so and offers Retry", async () => {
    const engine = start([["A fox:", { pictures: ["data:image/png;base64,aGVsbG8="] }]]);
    await ask(engine, "draw a fox");
    expect(pictures(engine)).toEqual([]);
    expect(engine.texts()).toEqual([
      "A fox:\n\n_An image from this answer is missing. What the model sent can't be opened as an image._",
    ]);
    expect(labelsOf(engine.channel[0])).toEqual(["retry"]);
  });

  test("the bot posts no image for a person without the permission", async () => {
    const policy = (): Policy => ({ access: { rules: [{ deny: ["pictures"] }] } });
    const engine = start([["A fox:", PICTURE]], { policy });
    await ask(engine, "draw a fox");
    expect(pictures(engine)).toEqual([]);
    expect(engine.texts()[0]).toMatch(/^A fox:\n\n_An image from this answer is missing\. ./);
    expect(labelsOf(engine.channel[0])).toEqual([]);
  });
});

describe.skipIf(isOnRedis)("an image in an answer whose process died", () => {
  /** The next process takes over. If it asks the model again, it gets the same answer. */
  async function takeOver(first: ReturnType<typeof start>, { database, platform }: EngineOptions, again: Script[]) {
    first.setTrouble(() => undefined);
    const second = start([...again, ["Red."]], { database, platform, tools: [toTool("look", async () => "seen")] });
    await second.idle();
    expect(pictures(second)).toHaveLength(1);
    // In a chain of replies, the next question continues from the answer's last message.
    const answer = second.channel.find(({ files }) => files.length === 0);
    await second.handle(message("what color is it?", { inReplyTo: answer?.id ?? "" }));
    expect(pictures(second)).toHaveLength(1);
    expect(seenIn(second)).toHaveLength(1);
  }

  // The process "dies" in a platform call that never ends. After that, `first` does nothing.
  test.each([
    ["upload", "before it knew that the picture was there"],
    ["edit", "before it could end the text"],
  ])("the bot posts an image once and the next question finds it, if the process died at: %s, %s", async (deadly) => {
    const world = { database: new DatabaseSync(":memory:"), platform: fakePlatform() };
    const first = start([["A fox:", PICTURE]], world);
    const dead = Promise.withResolvers<void>();
    first.setTrouble((call) => {
      const isDeadly = call === deadly && (deadly === "upload" || pictures(first).length > 0);
      if (isDeadly) dead.resolve();
      return isDeadly ? never : undefined;
    });
    await first.accept(message("draw a fox"));
    await dead.promise;
    await takeOver(first, world, [["A fox:", PICTURE]]);
  });

  test("the bot posts an image once and the next question finds it, if the process died in a tool that the model called after the image", async () => {
    const world = { database: new DatabaseSync(":memory:"), platform: fakePlatform() };
    const running = Promise.withResolvers<void>();
    const tools = [toTool("look", () => (running.resolve(), never))];
    const first = start([["A fox:", PICTURE, toCall("look")]], { ...world, tools });
    await first.accept(message("draw a fox"));
    await running.promise;
    await takeOver(first, world, [["Seen."]]);
  });
});
