import { describe, expect, test } from "vitest";
import type { Channel, Json, Message } from "../../lab/slack-sim/world.ts";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, startService } from "../../lab/support/service.ts";
import type { OnEnd } from "../support/listen.ts";
import { type Slack, startGeneral } from "../support/slack.ts";

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

interface Picture {
  message: Message;
  text: string;
  altText: unknown;
  bytes: Uint8Array;
  buttons: unknown[];
}

/** The service as a separate process in a workspace. It can restart with the same data. */
async function startDrawing(onEnd: OnEnd, more: Record<string, string> = {}) {
  const { slack, ada, general } = await startGeneral({}, onEnd);
  const { path, remove } = await makeDataDir();
  onEnd(remove);
  async function open() {
    const env = { SLACK_BOT_TOKEN: slack.botToken, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl };
    const service = await startService(path, { ...env, ...more });
    onEnd(async () => void (await service.end("SIGKILL")));
    await slack.until(() => slack.connections() >= 2, "the service to connect");
    return service;
  }
  return { slack, ada, general, open, service: await open() };
}

function pictures(slack: Slack, channel: Channel, count: number): Promise<Picture[]> {
  const found = () => slack.answers(channel).flatMap((message) => toPicture(slack, message));
  return slack.until(() => (found().length >= count ? found() : undefined), `${count} pictures`);
}

function toPicture(slack: Slack, message: Message): Picture[] {
  const { blocks } = message.content;
  const image = blocks.find(({ type }) => type === "image");
  const file = slack.workspace.files.get(String((image?.["slack_file"] as Json | undefined)?.["id"]));
  if (image === undefined || file === undefined) return [];
  const elements = blocks.flatMap((block) => (block["elements"] ?? []) as Json[]);
  const buttons = elements.map((element) => element["action_id"]);
  const text = message.states.at(-1)?.shown ?? "";
  return [{ message, text, altText: image["alt_text"], bytes: file.bytes, buttons }];
}

async function onlyPicture(slack: Slack, channel: Channel): Promise<Picture> {
  const [picture] = await pictures(slack, channel, 1);
  if (picture === undefined) throw new Error("There is no picture.");
  return picture;
}

test.concurrent("the buttons and the form of an image create images in its thread after a restart of the service", async ({
  onTestFinished,
}) => {
  const { slack, ada, general, service, open } = await startDrawing(onTestFinished);
  await ada.command("/imagine", "a lighthouse in the fog --ar 16:9", general);
  const first = await onlyPicture(slack, general);
  expect(Buffer.from(first.bytes.slice(0, 4))).toEqual(PNG);
  expect(first.altText).toContain("a lighthouse in the fog");
  expect(first.text).toContain("1360 × 765");
  expect(first.buttons).toEqual(["again", "vary", "edit", "upscale", "delete"]);
  expect(await service.end("SIGTERM")).toBe(0);

  await open();
  await ada.press(first.message, "again");
  const [, second] = await pictures(slack, general, 2);
  expect(second?.message.threadTs).toBe(first.message.ts);
  expect(second?.text).toContain("1360 × 765");

  await ada.press(first.message, "edit");
  const form = await slack.until(() => slack.view(ada), "the form");
  const ratio = { value: { selected_option: { value: "1:1" } } };
  await ada.submitView(form, { prompt: { value: { value: "the lighthouse at night" } }, ratio });
  const [, , third] = await pictures(slack, general, 3);
  expect(third?.text).toMatch(/1024 × 1024.*1 reference picture/s);
  expect(third?.message.threadTs).toBe(first.message.ts);

  await ada.shortcut("imagine_from_message", first.message);
  const shortcut = await slack.until(() => slack.view(ada), "the form of the shortcut");
  const files = ada.attach([{ name: "dog.png", bytes: first.bytes }]);
  await ada.submitView(shortcut, {
    prompt: { value: { value: "both together" } },
    references: { value: { type: "file_input", files } },
  });
  const [, , , fourth] = await pictures(slack, general, 4);
  expect(fourth?.text).toContain("2 reference pictures");
  expect(fourth?.message.threadTs).toBe(first.message.ts);
});

async function startOnRedis(onEnd: OnEnd): Promise<Record<string, string>> {
  const redis = await startRedis();
  onEnd(redis.stop);
  return { REDIS_URL: redis.url };
}

describe.concurrent.each([
  { store: "its own disk", isMissing: false, open: async () => ({}) },
  { store: "Redis (needs redis-server)", isMissing: isRedisMissing, open: startOnRedis },
])("the notice of a waiting image with $store", ({ isMissing, open: openStore }) => {
  test.skipIf(isMissing)(
    "the service removes the notice of a waiting image although the process that posted it was killed",
    async ({ onTestFinished }) => {
      const { slack, ada, general, service, open } = await startDrawing(
        onTestFinished,
        await openStore(onTestFinished),
      );
      // One person can have two turns at a time.
      for (const name of ["one", "two", "three"])
        await ada.command("/imagine", `a boat slowly, number ${name}`, general);
      const waiting = () => slack.texts(general).filter((text) => text.includes("Waiting for other images"));
      await slack.until(() => waiting().length === 1, "the word that a picture waits");
      await service.end("SIGKILL");
      await open();
      await pictures(slack, general, 3);
      await slack.until(() => slack.messages(general).length === 3, "the pictures alone");
    },
  );
});
