import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, command, message } from "../../lab/support/events.ts";
import { fakeGateway, type Step } from "../../lab/support/fake-gateway.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { createGenerateImage } from "../../src/imagine/generate-image.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { type Meet, startImageGateway } from "../support/image-gateway.ts";
import { askTool } from "../support/tool-calls.ts";

const draw = (args: object, index = 0): Step => ({
  tool_calls: [
    { index, id: `c${index}`, type: "function", function: { name: "generate_image", arguments: JSON.stringify(args) } },
  ],
});

async function start(
  scripts: Step[][],
  { meet, database = new DatabaseSync(":memory:") }: { meet?: Meet; database?: DatabaseSync } = {},
) {
  const platform = fakePlatform();
  const images = await startImageGateway(platform.findFile, { ...(meet && { meet }) });
  const { references, calls, origin } = images;
  const run = (...scripts: Step[][]) => {
    const { gateway: chat, requests } = fakeGateway(...scripts);
    const gateway: Gateway = { ...chat, generateImage: images.gateway.generateImage };
    return { ...startEngine({ gateway, references, platform, database, imageModel: "sandbox-image" }), requests };
  };
  return { ...run(...scripts), calls, origin, run };
}

describe("generate_image", () => {
  test("generate_image accepts as many references as the operator allows", () => {
    const imagine = { draw: () => Promise.reject(new Error("Nothing is drawn.")) };
    const history = { read: () => Promise.reject(new Error("Nothing is read.")) };
    const { schema } = createGenerateImage({ imagine, history, maxReferences: 14 });
    const mayUse = (count: number) =>
      schema.safeParse({ prompt: "all", use_references: Array.from({ length: count }, (_, at) => `${at + 1}`) })
        .success;
    expect([mayUse(14), mayUse(15)]).toEqual([true, false]);
  });

  test("generate_image shows the image during the turn, and reports it to the model", async () => {
    const hold = Promise.withResolvers<void>();
    const { accept, idle, channel, requests, until, progress } = await start([
      [draw({ prompt: "a fox", ratio: "16:9" })],
      [hold.promise, "There it is."],
    ]);
    await accept(message("Draw a fox"));
    await until(() => channel.length === 1);
    expect(channel[0]?.files[0]?.name).toBe("a-fox.png");
    expect(channel[0]?.draft.buttons.map((button) => button.action)).toContain("vary");
    hold.resolve();
    await idle();
    expect(channel.map(({ draft }) => draft.markdown)).toEqual([
      expect.stringContaining("`a fox` · 16:9 · `sandbox-image`"),
      "There it is.",
    ]);
    expect(requests[0]?.tools?.map((tool) => tool.function.name)).toContain("generate_image");
    expect(requests[1]?.messages.at(-1)?.content).toBe("One image was created and shown: a fox");
    expect(progress).toContain("creating an image: a fox");
  });

  test("generate_image calls a paused image model at once for a retried answer", async () => {
    const busy = { status: 429, body: {}, headers: { "retry-after": "3600" } };
    const scripts: Step[][] = [
      [draw({ prompt: "a fox" })],
      [new GatewayError("interrupted", "cut")],
      [draw({ prompt: "a tree" })],
      ["No tree."],
      [draw({ prompt: "a fox" })],
      ["There it is."],
    ];
    const meet: Meet = async (_, index) => (index === 0 ? busy : undefined);
    const { accept, idle, calls, channel } = await start(scripts, { meet });
    const question = message("Draw a fox");
    await accept(question);
    await idle();
    await accept(message("And a tree"));
    await idle();
    expect(calls).toHaveLength(1);
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(calls).toHaveLength(2);
    expect(channel.flatMap(({ files }) => files.map(({ name }) => name))).toEqual(["a-fox.png"]);
  });

  test("generate_image stores the image in the history: the model sees it, and starts the next image from it", async () => {
    const { accept, idle, channel, requests, calls, origin } = await start([
      [draw({ prompt: "a fox" })],
      ["Here."],
      [draw({ prompt: "the fox at night", use_references: ["last"] })],
      ["At night."],
    ]);
    await accept(message("Draw a fox"));
    await idle();
    await accept(message("Now at night"));
    await idle();
    const shown = requests[2]?.messages.find(({ content }) => Array.isArray(content));
    expect(shown).toMatchObject({
      role: "user",
      content: [
        { type: "text", text: '(An image was created and shown here for "Ada", from the prompt: "a fox")' },
        { type: "text", text: 'Attached picture "a-fox.png":' },
        { type: "image_url", image_url: { url: expect.stringMatching(/^data:image\/png;base64,/) } },
      ],
    });
    const fileUri = `${origin}/${encodeURIComponent(`${channel[0]?.id}/0`)}`;
    expect(calls[1]?.body.contents[0]?.parts).toEqual([
      { text: "the fox at night" },
      { fileData: { mimeType: "image/png", fileUri } },
    ]);
  });

  test("generate_image can start from images that /imagine created in the same conversation, by name or by number", async () => {
    const { accept, idle, calls } = await start([
      [draw({ prompt: "both", use_references: ["2", "a-tree.png"] })],
      ["Here."],
    ]);
    for (const prompt of ["a boat", "a tree"]) {
      await accept(command("imagine", prompt));
      await idle();
    }
    await accept(message("Put them together"));
    await idle();
    const links = calls[2]?.body.contents[0]?.parts.slice(1).map(({ fileData }) => fileData?.fileUri);
    expect(links?.map((link) => decodeURIComponent(link ?? ""))).toEqual([
      expect.stringMatching(/reply2\/0$/),
      expect.stringMatching(/reply4\/0$/),
    ]);
  });

  test("generate_image stores the image on its branch of the conversation", async () => {
    const { accept, idle, channel, requests } = await start([
      [draw({ prompt: "a fox" })],
      ["A fox."],
      ["About boats."],
      [draw({ prompt: "the fox at night", use_references: ["1"] })],
      ["At night."],
    ]);
    await accept(message("Draw a fox"));
    await idle();
    const answer = channel.at(-1)?.id ?? "";
    await accept(message("Something about boats"));
    await idle();
    await accept(message("Now at night", { inReplyTo: answer }));
    await idle();
    const asked = JSON.stringify(requests[3]?.messages.map(({ content }) => content));
    expect(asked).toContain("a-fox.png");
    expect(asked).not.toContain("boats");
    expect(channel.at(-2)?.files[0]?.name).toBe("the-fox-at-night.png");
  });

  test("generate_image tells the model why an image failed, and which images exist", async () => {
    const { accept, idle, requests, texts } = await start([
      [draw({ prompt: "a fox sandbox fault: no-image" }), draw({ prompt: "x", use_references: ["last"] }, 1)],
      ["Sorry."],
    ]);
    await accept(message("Draw"));
    await idle();
    const results = requests[1]?.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    expect(results).toEqual([
      expect.stringMatching(/^Image 1 is missing\. The model created no image\./),
      "Not created: this conversation has no images.",
    ]);
    expect(texts()).toEqual(["Sorry."]);
  });

  test("generate_image creates a limited number of images in one answer", async () => {
    const { accept, idle, channel, requests } = await start([
      Array.from({ length: 5 }, (_, index) => draw({ prompt: `fox ${index}` }, index)),
      ["Enough."],
    ]);
    await accept(message("Draw on"));
    await idle();
    expect(channel.filter(({ files }) => files.length > 0)).toHaveLength(3);
    expect(requests[1]?.messages.at(-1)?.content).toContain("one answer can create images at most 3 times");
  });

  test.skipIf(isOnRedis)(
    "generate_image does not repeat images after a crash, and creates new ones on Retry",
    async () => {
      const database = new DatabaseSync(":memory:");
      const hold = Promise.withResolvers<void>();
      const { accept, channel, until, queue, calls, run, requests } = await start(
        [[draw({ prompt: "a fox" })], [hold.promise]],
        { database },
      );
      const question = message("Draw a fox");
      await accept(question);
      await until(() => channel.length === 1);
      while (requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
      await queue.close(0);

      const second = run([draw({ prompt: "one fox" })], ["There.", { finish: "error" }]);
      await second.idle();
      expect(calls).toHaveLength(1);
      expect(channel.filter(({ files }) => files.length > 0)).toHaveLength(1);
      expect(second.requests[1]?.messages.at(-1)?.content).toBe("One image was created and shown: a fox");

      const third = run([draw({ prompt: "another fox" })], ["Again."]);
      await third.accept(action("retry", toTurnId(question.key)));
      await third.idle();
      expect(calls).toHaveLength(2);
      expect(channel.filter(({ files }) => files.length > 0)).toHaveLength(2);
    },
  );

  test("the bot does not offer generate_image without an image model", async () => {
    const { accept, idle, requests } = startEngine();
    await accept(message("Draw a fox"));
    await idle();
    expect(requests[0]?.tools?.map((tool) => tool.function.name)).not.toContain("generate_image");
  });

  test("generate_image rejects calls outside of a turn", async () => {
    const unused = () => Promise.reject(new Error("not part of this test"));
    const tool = createGenerateImage({ imagine: { draw: unused }, history: { read: unused }, maxReferences: 8 });
    expect(await askTool(tool, { prompt: "x" })).toBe("Images can only be created in a conversation.");
  });
});
