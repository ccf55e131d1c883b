import { DatabaseSync } from "node:sqlite";
import { fileTypeFromBuffer } from "file-type";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command } from "../../lab/support/events.ts";
import { fakePlatform, type Shown } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { toPictureLane } from "../../src/imagine/lanes.ts";
import type { ActionEvent, CommandEvent } from "../../src/port/events.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";
import { type Meet, startImageGateway } from "../support/image-gateway.ts";

interface Stage {
  meet?: Meet;
  platform?: ReturnType<typeof fakePlatform>;
  database?: DatabaseSync;
}

async function start({ meet, platform = fakePlatform(), database = new DatabaseSync(":memory:") }: Stage = {}) {
  const images = await startImageGateway(platform.findFile, { ...(meet && { meet }) });
  const { gateway, references } = images;
  const again = () =>
    startEngine({ gateway, references, platform, database, model: "sandbox-chat", imageModel: "sandbox-image" });
  return { ...again(), ...images, again };
}

const imagine = (text: string, more: Partial<CommandEvent> = {}): CommandEvent => ({
  ...command("imagine", text),
  ...more,
});
const pictures = (channel: readonly Shown[]) => channel.filter(({ files }) => files.length > 0);
const buttonsOf = (shown: Shown | undefined) => shown?.draft.buttons.map(({ action, label }) => [action, label]);
const idOf = (shown: Shown | undefined) => shown?.draft.buttons[0]?.turnId ?? "";

function press(name: ActionEvent["action"], shown: Shown | undefined, author = command("x").author): ActionEvent {
  return action(name, idOf(shown), { author });
}

describe("/imagine", () => {
  test("/imagine shows the image with its request, and removes the status message", async () => {
    const { accept, idle, channel, calls, violations } = await start();
    await accept(imagine("a red house --ar 16:9 --size 2k"));
    await idle();
    expect(channel).toHaveLength(1);
    const [shown] = channel;
    const [file] = shown?.files ?? [];
    expect(file).toMatchObject({ name: "a-red-house.png", contentType: "image/png", altText: "a red house" });
    expect(await fileTypeFromBuffer(file?.bytes ?? new Uint8Array())).toMatchObject({ mime: "image/png" });
    expect(shown?.draft.markdown).toContain("`a red house` · 16:9 · 2K · `sandbox-image` · ");
    expect(shown?.draft.markdown).toMatch(/\d tokens · for `Ada`$/);
    expect(buttonsOf(shown)).toEqual([
      ["again", "Again"],
      ["vary", "Vary"],
      ["edit", "Edit…"],
      ["upscale", "Upscale to 4K"],
      ["delete", "Delete"],
    ]);
    expect(calls).toHaveLength(1);
    expect(violations).toEqual([]);
  });

  test("Retry calls a paused image model at once, and a new request does not", async () => {
    const busy = { status: 429, body: {}, headers: { "retry-after": "3600" } };
    const { accept, idle, channel, calls } = await start({
      meet: async (_, index) => (index === 0 ? busy : undefined),
    });
    await accept(imagine("a boat"));
    await idle();
    const [refused] = channel;
    await accept(imagine("a tree"));
    await idle();
    expect(calls).toHaveLength(1);
    await accept(press("retry", refused));
    await idle();
    expect(calls).toHaveLength(2);
    expect(pictures(channel).map(({ files }) => files[0]?.name)).toEqual(["a-boat.png"]);
  });

  test("/imagine creates four images as four messages, two in parallel, each as soon as it is finished", async () => {
    let [open, most] = [0, 0];
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    const meet: Meet = async (_, index) => {
      most = Math.max(most, ++open);
      await gates[index]?.promise;
      open -= 1;
    };
    const { accept, idle, channel, texts, until } = await start({ meet });
    await accept(imagine("a fox --count 4"));
    gates[1]?.resolve();
    await until(() => pictures(channel).length === 1);
    await until(() => texts()[0] === "Creating `a fox` … 1 of 4 done");
    for (const gate of gates) gate.resolve();
    await idle();
    expect(most).toBe(2);
    expect(channel.map(({ files }) => files[0]?.name ?? "").toSorted()).toEqual([
      "a-fox-1.png",
      "a-fox-2.png",
      "a-fox-3.png",
      "a-fox-4.png",
    ]);
  });

  test("an invalid /imagine lists all its problems in one sentence, to its author, before anything is sent", async () => {
    const { accept, idle, texts, calls } = await start();
    await accept(imagine(" --ar 7:9 --size 9k --n 5 --model sandbox-imag --style raw"));
    await idle();
    expect(calls).toEqual([]);
    expect(texts()).toEqual([
      "I can't create that: there is no option `--style`, only `--ar`, `--size`, `--count`, `--model`, `--spoiler`; " +
        "describe the image, for example `/imagine a lighthouse at dusk --ar 16:9`; " +
        "the ratio `7:9` is not one of 1:1, 16:9, 9:16, 4:3, 3:4, 3:2, 2:3, 5:4, 4:5, 21:9, 1:4, 4:1, 1:8, 8:1; " +
        "the size `9k` is not one of 1K, 2K, 4K; the count `5` is not a number from 1 to 4; " +
        "the AI service has no image model `sandbox-imag`, but `sandbox-image`.",
    ]);
  });

  test("/imagine without an image model says what to set", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(imagine("a fox"));
    await idle();
    expect(texts()).toEqual([expect.stringContaining("The operator can set `IMAGE_MODEL`")]);
  });

  test.skipIf(isOnRedis)(
    "/imagine with a failed image keeps the others, says why, and retries only the failed one",
    async () => {
      const isRefused = { now: true };
      const meet: Meet = async (_, index) => {
        if ((index !== 1 && index < 4) || !isRefused.now) return undefined;
        const error = { type: "server_error", code: "boom", message: "no", param: null };
        return { status: 500, body: { error } };
      };
      const { accept, idle, channel, texts, calls } = await start({ meet });
      await accept(imagine("a fox --count 4"));
      await idle();
      expect(pictures(channel)).toHaveLength(3);
      const status = channel.find(({ files }) => files.length === 0);
      expect(status?.draft.markdown).toMatch(/^1 of 4 images for `a fox` is missing\.\n\nThe AI service /);
      expect(buttonsOf(status)).toEqual([["retry", "Retry"]]);

      await Promise.all([accept(press("retry", status)), accept(press("retry", status))]);
      await idle();
      expect(calls).toHaveLength(5);
      expect(status?.draft.markdown).toContain("is missing");

      isRefused.now = false;
      await accept(press("retry", status, ben));
      await idle();
      expect(texts().at(-1)).toBe("Only the person who asked, or a moderator, can do that.");
      await Promise.all([accept(press("retry", status)), accept(press("retry", status))]);
      await idle();
      expect(pictures(channel)).toHaveLength(4);
      expect(calls).toHaveLength(6);
      expect(channel).not.toContain(status);
    },
  );

  test.each([
    ["sandbox fault: no-image", /The model created no image\. It said: .*Rephrase your request, or press Retry\./],
    ["sandbox fault: 401", /`GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`/],
    ["sandbox fault: 429=20", /The AI service is limiting .* Press Retry in \d+ second/],
    ["sandbox fault: reset", /I can't reach the AI service/],
    ["sandbox fault: html", /something that is not an image/],
  ])("/imagine explains in plain words that the gateway answered with %j", async (prompt, words) => {
    const { accept, idle, texts } = await start();
    await accept(imagine(`a fox ${prompt}`));
    await idle();
    expect(texts()).toEqual([expect.stringMatching(words)]);
    expect(texts()[0]).not.toContain("sk-sandbox");
  });
});

describe("the buttons of an image", () => {
  test("the Delete button of an image works once, for the asker and for moderators", async () => {
    const { accept, idle, channel, texts, calls, history } = await start();
    await accept(imagine("a fox"));
    await idle();
    const [shown] = channel;
    await accept(press("delete", shown, ben));
    await idle();
    expect(texts().at(-1)).toContain("Only the person who asked");
    await accept(press("delete", shown, { ...ben, isModerator: true }));
    await accept(press("delete", shown));
    await idle();
    expect(pictures(channel)).toEqual([]);
    expect((await history.read("test:a", { maxEntries: 5 })).entries).toEqual([]);
    await accept(press("vary", shown));
    await idle();
    expect(texts().at(-1)).toContain("too old");
    expect(calls).toHaveLength(1);
  });

  test("the Edit button of an image fills the form, and the submitted form starts from the image", async () => {
    const { accept, idle, channel, imagineMenu, calls } = await start();
    await accept(imagine("a fox --ar 3:4 --spoiler"));
    await idle();
    expect(channel[0]?.files[0]?.isSpoiler).toBe(true);
    const described = await imagineMenu.describe(idOf(channel[0]), command("imagine"), new AbortController().signal);
    const options = { ratio: "3:4", spoiler: "true", model: "sandbox-image", basis: idOf(channel[0]) };
    expect(described).toEqual({ prompt: "a fox", options });
    await accept(imagine("at night", { options }));
    await idle();
    expect(calls[1]?.body.contents[0]?.parts).toMatchObject([{ text: "at night" }, { fileData: {} }]);
    await accept(imagine("at night", { options: { basis: "gone.1" } }));
    await idle();
    expect(channel.at(-1)?.draft.markdown).toContain("the image to start from is no longer stored");
  });
});

describe("a button that a person presses before the record knows its image", () => {
  const held = () => {
    const platform = fakePlatform();
    const gate = Promise.withResolvers<void>();
    const { sink } = platform;
    const upload = sink.upload.bind(sink);
    let count = 0;
    // People see the image at once, but the bot gets the response to its upload later.
    sink.upload = async (...given) => {
      const posted = await upload(...given);
      if (count++ === 0) await gate.promise;
      return posted;
    };
    return { platform, gate };
  };

  test.each(["vary", "upscale", "again", "delete"] as const)("an early button does what it says: %s", async (name) => {
    const { platform, gate } = held();
    const { accept, idle, channel, until, texts } = await start({ platform });
    await accept(imagine("a fox"));
    await until(() => pictures(channel).length === 1);
    const [shown] = pictures(channel);
    await accept(press(name, shown));
    gate.resolve();
    await idle();
    expect(texts().filter((text) => /too old|not finished|opened again/.test(text))).toEqual([]);
    expect(pictures(channel)).toHaveLength(name === "delete" ? 0 : 2);
  });

  test("an early button works even if the process dies before the record knows the image", async () => {
    const database = new DatabaseSync(":memory:");
    const { platform, gate } = held();
    const { accept, channel, until, queue, again, texts } = await start({ platform, database });
    await accept(imagine("a fox"));
    await until(() => pictures(channel).length === 1);
    const ended = queue.close(0);
    await ended;
    gate.resolve();
    const later = again();
    await later.accept(press("vary", pictures(channel)[0]));
    await later.idle();
    expect(texts().filter((text) => /too old|not finished/.test(text))).toEqual([]);
    expect(pictures(channel)).toHaveLength(2);
  });
});

describe("Stop for /imagine", () => {
  const gated = () => {
    const gate = Promise.withResolvers<void>();
    const meet: Meet = async (_, index) => (index < 1 ? undefined : gate.promise);
    return { gate, meet };
  };
  const status = (channel: readonly Shown[]) => channel.find(({ files }) => files.length === 0);

  test("Stop keeps the finished images, and Retry creates the rest", async () => {
    const { gate, meet } = gated();
    const { accept, idle, channel, until, texts } = await start({ meet });
    await accept(imagine("a fox --count 3"));
    await until(() => pictures(channel).length === 1);
    await accept(press("stop", status(channel), ben));
    expect(buttonsOf(status(channel))).toEqual([["stop", "Stop"]]);
    await accept(press("stop", status(channel)));
    await until(() => status(channel)?.draft.markdown.includes("are missing") === true);
    expect(status(channel)?.draft.markdown).toBe("2 of 3 images for `a fox` are missing.\n\nStopped.");
    expect(buttonsOf(status(channel))).toEqual([["retry", "Retry"]]);
    gate.resolve();
    await accept(press("retry", status(channel)));
    await idle();
    expect(pictures(channel)).toHaveLength(3);
    expect(texts()).toContainEqual(expect.stringContaining("Only the person who asked"));
  });

  test("Stop ends a waiting turn at once, and the turn does not run later", async () => {
    const gate = Promise.withResolvers<void>();
    const { accept, idle, channel, until, calls } = await start({ meet: () => gate.promise });
    for (const prompt of ["one", "two", "three"]) await accept(imagine(prompt));
    const waiting = () => channel.find(({ draft }) => draft.markdown.startsWith("Waiting"));
    await until(() => waiting() !== undefined);
    const shown = waiting();
    await accept(press("stop", shown));
    await until(() => shown?.draft.markdown.includes("No image for `three`.") === true);
    expect(shown?.draft.markdown).toContain("Stopped.");
    gate.resolve();
    await idle();
    expect(pictures(channel)).toHaveLength(2);
    expect(calls).toHaveLength(2);
    await accept(press("retry", shown));
    await idle();
    expect(pictures(channel)).toHaveLength(3);
  });

  test("Stop ends a turn that resumes after a crash", async () => {
    const database = new DatabaseSync(":memory:");
    const { gate, meet } = gated();
    const { accept, channel, until, queue, again, calls } = await start({ meet, database });
    await accept(imagine("a fox --count 4"));
    await until(() => pictures(channel).length === 1);
    await queue.close(0);
    const shown = status(channel);
    const later = again();
    await later.accept(press("stop", shown));
    await until(() => shown?.draft.markdown.includes("Stopped.") === true);
    await later.idle();
    gate.resolve();
    expect(pictures(channel)).toHaveLength(1);
    expect(calls.length).toBeLessThanOrEqual(5);
    await later.accept(press("retry", shown));
    await later.idle();
    expect(pictures(channel)).toHaveLength(4);
  });
});

test.skipIf(isOnRedis)("a Stop that arrived while the process died ends the turn when it resumes", async () => {
  const database = new DatabaseSync(":memory:");
  const gate = Promise.withResolvers<void>();
  const meet: Meet = async (_, index) => (index < 1 ? undefined : gate.promise);
  const { accept, channel, until, queue, again } = await start({ meet, database });
  await accept(imagine("a fox --count 2"));
  await until(() => pictures(channel).length === 1);
  await queue.close(0);
  const pressed = press(
    "stop",
    channel.find(({ files }) => files.length === 0),
  );
  const lane = toPictureLane(pressed);
  await createSqliteJournal({ database, log: silent }).accept({ ...pressed, ...(lane && { lane }) });
  await again().idle();
  gate.resolve();
  expect(channel.find(({ files }) => files.length === 0)?.draft.markdown).toContain("Stopped.");
  expect(pictures(channel)).toHaveLength(1);
});

describe("an interrupted image job", () => {
  test("the next start finishes an interrupted turn: four images, none twice", async () => {
    const database = new DatabaseSync(":memory:");
    const gate = Promise.withResolvers<void>();
    const meet: Meet = async (_, index) => (index < 2 ? undefined : gate.promise);
    const { accept, channel, calls, queue, again, until } = await start({ database, meet });
    await accept(imagine("a fox --count 4"));
    await until(() => pictures(channel).length === 2);
    await queue.close(0);
    gate.resolve();
    const later = again();
    await later.idle();
    expect(channel.map(({ nonce }) => nonce.replace(/^.*\./, "")).toSorted()).toEqual(["1", "2", "3", "4"]);
    expect(channel.every(({ files }) => files.length === 1)).toBe(true);
    expect(calls.length).toBeLessThanOrEqual(6);
  });

  test("a crash between the upload and its record shows the image once", async () => {
    const database = new DatabaseSync(":memory:");
    const platform = fakePlatform();
    platform.setTrouble((call) => (call === "upload" ? { kind: "unavailable", written: true } : undefined));
    const { accept, channel, queue, again, until } = await start({ database, platform });
    await accept(imagine("a fox"));
    await until(() => pictures(channel).length === 1);
    await queue.close(0);
    platform.setTrouble(() => undefined);
    await again().idle();
    expect(channel).toHaveLength(1);
    expect(pictures(channel)).toHaveLength(1);
  });
});

describe("limits of image turns", () => {
  test("one person has two image turns at a time and the others in order, and delays no conversation", async () => {
    const gate = Promise.withResolvers<void>();
    const prompts: string[] = [];
    const meet: Meet = async ({ body }) => {
      prompts.push(body.contents[0]?.parts[0]?.text ?? "");
      await gate.promise;
    };
    const { accept, idle, channel, until, texts } = await start({ meet });
    for (const prompt of ["one", "two", "three", "four"]) await accept(imagine(prompt));
    await accept(imagine("by ben", { author: ben }));
    await until(() => channel.length === 5);
    await accept(command("help"));
    await until(() => texts().some((text) => text.includes("I'm Palaver")));
    expect(channel.filter(({ draft }) => draft.markdown.startsWith("Creating"))).toHaveLength(3);
    expect(texts().filter((text) => text.startsWith("Waiting"))).toHaveLength(2);
    gate.resolve();
    await idle();
    expect(pictures(channel)).toHaveLength(5);
    expect(channel.filter(({ files }) => files.length === 0)).toHaveLength(1);
    expect(prompts.slice(0, 3).toSorted()).toEqual(["by ben", "one", "two"]);
    expect(prompts.slice(3)).toEqual(["three", "four"]);
  });
});

describe("the image requests of a person", () => {
  test("/export contains a person's image requests", async () => {
    const { accept, idle, channel } = await start();
    await accept(imagine("a fox"));
    await idle();
    const shown = channel[0]?.id;
    await accept(command("export"));
    await idle();
    const [file] = channel.at(-1)?.files ?? [];
    const { pictures: own } = JSON.parse(Buffer.from(file?.bytes ?? []).toString()) as { pictures: unknown[] };
    expect(own).toMatchObject([{ prompt: "a fox", model: "sandbox-image", messageIds: [shown] }]);
  });

  test("/export and /forget of other people leave a private image request to its person", async () => {
    const { accept, idle, channel, history } = await start();
    const reply = { platform: "test", channelId: "general", visibleTo: "ada" };
    await accept(imagine("a fox", { reply }));
    await idle();
    expect(pictures(channel)).toHaveLength(1);
    expect(await history.isNew("test:a")).toBe(true);
  });
});

describe("/forget me", () => {
  test("/forget me removes waiting image requests", async () => {
    const gate = Promise.withResolvers<void>();
    const { accept, idle, until, texts, calls } = await start({ meet: () => gate.promise });
    for (const prompt of ["one", "two", "three"]) await accept(imagine(prompt));
    await until(() => texts().some((text) => text.startsWith("Waiting")) && texts().length === 3);
    await accept(command("forget", "me for good", { conversationId: "test:b" }));
    await idle();
    gate.resolve();
    expect(texts()).toEqual([expect.stringContaining("I no longer know anything about you")]);
    expect(calls.length).toBeLessThanOrEqual(2);
  });

  test("/forget me ends the person's image turns, and erases their requests", async () => {
    const gate = Promise.withResolvers<void>();
    const meet: Meet = async (_, index) => (index === 0 ? undefined : gate.promise);
    const { accept, idle, channel, until, imagineMenu } = await start({ meet });
    await accept(imagine("a fox"));
    await idle();
    const id = idOf(channel[0]);
    await accept(imagine("a secret"));
    await until(() => channel.length === 2);
    await accept(command("forget", "me for good", { conversationId: "test:b" }));
    await idle();
    gate.resolve();
    expect(await imagineMenu.describe(id, command("imagine"), new AbortController().signal)).toBeUndefined();
    expect(channel.map(({ draft }) => draft.markdown).join()).not.toContain("secret");
  });
});
