import { DatabaseSync } from "node:sqlite";
import { fileTypeFromBuffer } from "file-type";
import { describe, expect, test } from "vitest";
import { createJobStore } from "../../src/imagine/job-store.ts";
import type { ActionEvent, AttachmentRef, CommandEvent } from "../../src/port/events.ts";
import { createStores } from "../../src/store/keyv.ts";
import { isOnRedis } from "../support/bot-store.ts";
import { startEngine } from "../support/engine.ts";
import { action, ben, command } from "../support/events.ts";
import { fakePlatform, type Shown } from "../support/fake-platform.ts";
import { type Meet, startImageGateway } from "../support/image-gateway.ts";
import { silent } from "../support/log.ts";
import { noCopies, noLinks, pictureJob } from "../support/picture-job.ts";

interface Stage {
  meet?: Meet;
  platform?: ReturnType<typeof fakePlatform>;
  database?: DatabaseSync;
}

/** The bot before a sandbox that draws, and a channel that can be looked at. */
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
  test("shows the picture with what was asked, and takes the status message away", async () => {
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

  test("draws at once by Retry though the model wants to be left alone, which no new request does", async () => {
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

  test("sends what the interface lists and nothing else, references in order", async () => {
    const { accept, idle, calls, channel, origin } = await start();
    await accept(imagine("a boat"));
    await accept(imagine("a tree"));
    await idle();
    const attachments = pictures(channel).map(({ id, files }): AttachmentRef => {
      return { platform: "test", id: `${id}/0`, name: "x.png", sizeBytes: files[0]?.bytes.length ?? 0 };
    });
    await accept(imagine("both together --ar 4:3 --size 1K", { attachments }));
    await idle();
    const link = (index: number) => `${origin}/${encodeURIComponent(attachments[index]?.id ?? "")}`;
    expect(calls[2]).toMatchObject({ path: "/v1beta/models/sandbox-image:generateContent" });
    expect(calls[2]?.body).toEqual({
      contents: [
        {
          parts: [
            { text: "both together" },
            { fileData: { mimeType: "image/png", fileUri: link(0) } },
            { fileData: { mimeType: "image/png", fileUri: link(1) } },
          ],
        },
      ],
      generationConfig: {
        responseModalities: ["TEXT", "IMAGE"],
        imageConfig: { aspectRatio: "4:3", imageSize: "1K" },
      },
    });
    expect(calls[0]?.body).toEqual({
      contents: [{ parts: [{ text: "a boat" }] }],
      generationConfig: { responseModalities: ["TEXT", "IMAGE"] },
    });
    expect(channel).toHaveLength(3);
  });

  test("draws four as four messages, two side by side, each as soon as it is there", async () => {
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
    await until(() => texts()[0] === "Drawing `a fox` … 1 of 4 done");
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

  test("that cannot be drawn says everything that is wrong in one sentence, to its author, before anything is sent", async () => {
    const { accept, idle, texts, calls } = await start();
    await accept(imagine(" --ar 7:9 --size 9k --n 5 --model sandbox-imag --style raw"));
    await idle();
    expect(calls).toEqual([]);
    expect(texts()).toEqual([
      "I cannot draw that: there is no option `--style`, only `--ar`, `--size`, `--count`, `--model`, `--spoiler`; " +
        "say what to draw, for example `/imagine a lighthouse at dusk --ar 16:9`; " +
        "the ratio `7:9` is not one of 1:1, 16:9, 9:16, 4:3, 3:4, 3:2, 2:3, 5:4, 4:5, 21:9, 1:4, 4:1, 1:8, 8:1; " +
        "the size `9k` is not one of 1K, 2K, 4K; the count `5` is not a number from 1 to 4; " +
        "the AI service has no model `sandbox-imag` for pictures, but `sandbox-image`.",
    ]);
  });

  test("without a model for pictures says what to set", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(imagine("a fox"));
    await idle();
    expect(texts()).toEqual([expect.stringContaining("The operator can set `IMAGE_MODEL`")]);
  });

  test.skipIf(isOnRedis)(
    "with a part that fails keeps the others, says why, and draws that part alone again",
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
      expect(status?.draft.markdown).toMatch(/^1 of 4 pictures of `a fox` is missing\.\n\nThe AI service /);
      expect(buttonsOf(status)).toEqual([["retry", "Retry"]]);

      await Promise.all([accept(press("retry", status)), accept(press("retry", status))]);
      await idle();
      expect(calls).toHaveLength(5);
      expect(status?.draft.markdown).toContain("is missing");

      isRefused.now = false;
      await accept(press("retry", status, ben));
      await idle();
      expect(texts().at(-1)).toBe("Only the person who asked for this picture, or a moderator, can do that.");
      await Promise.all([accept(press("retry", status)), accept(press("retry", status))]);
      await idle();
      expect(pictures(channel)).toHaveLength(4);
      expect(calls).toHaveLength(6);
      expect(channel).not.toContain(status);
    },
  );

  test.each([
    ["sandbox fault: no-image", /The model drew no picture\. It said: .*Put it in other words, or press Retry\./],
    ["sandbox fault: not-an-image", /there is no picture in what the AI service sent/],
    ["sandbox fault: 401", /`GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`/],
    ["sandbox fault: 403", /doesn't let this bot use the model `sandbox-image`/],
    ["sandbox fault: 429=20", /The AI service is limiting .* Press Retry in \d+ second/],
    ["sandbox fault: reset", /I can't reach the AI service/],
    ["sandbox fault: html", /there is no picture in what the AI service sent/],
  ])("that the gateway answers with %j ends in plain words", async (prompt, words) => {
    const { accept, idle, texts } = await start();
    await accept(imagine(`a fox ${prompt}`));
    await idle();
    expect(texts()).toEqual([expect.stringMatching(words)]);
    expect(texts()[0]).not.toContain("sk-sandbox");
  });
});

describe("a picture's button", () => {
  test("works after a restart, and on the picture that it made", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, idle, channel, queue, again, calls, origin } = await start({ database });
    await accept(imagine("a fox --ar 16:9"));
    await idle();
    await queue.close(0);

    const later = again();
    const [first] = channel;
    await later.accept(press("upscale", first, ben));
    await later.idle();
    const upscaled = channel[1];
    expect(upscaled?.draft.markdown).toContain("`a fox` · enlarged · 16:9 · 2K");
    expect(upscaled?.draft.markdown).toContain("for `Ben`");
    await later.accept(press("vary", upscaled));
    await later.idle();
    await later.accept(press("again", channel[2]));
    await later.idle();
    expect(channel).toHaveLength(4);
    const link = (shown: Shown | undefined) => ({
      fileData: { mimeType: "image/png", fileUri: `${origin}/${encodeURIComponent(`${shown?.id}/0`)}` },
    });
    const partsOf = (index: number) => calls[index]?.body.contents[0]?.parts ?? [];
    expect(partsOf(1).slice(1)).toEqual([link(first)]);
    expect(partsOf(2).slice(1)).toEqual([link(upscaled), link(first)]);
    expect(partsOf(3)).toEqual(partsOf(2));
    expect(partsOf(2)[0]?.text).toMatch(/^a fox\n\n.*variation/);
  });

  test("deletes for the one who asked and for moderators, once", async () => {
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

  test("of a picture that is not kept any more says so", async () => {
    const { accept, idle, texts } = await start();
    await accept(action("again", "gone.1"));
    await idle();
    expect(texts()).toEqual([expect.stringContaining("This picture is too old")]);
  });

  test("for changing it fills the form, whose answer starts from the picture", async () => {
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
    expect(channel.at(-1)?.draft.markdown).toContain("the picture it is to start from is not kept any more");
  });
});

describe("a button that is pressed before the record knows of its picture", () => {
  const held = () => {
    const platform = fakePlatform();
    const gate = Promise.withResolvers<void>();
    const { sink } = platform;
    const upload = sink.upload.bind(sink);
    let count = 0;
    // What people see at once, and the bot is told of later.
    sink.upload = async (...given) => {
      const posted = await upload(...given);
      if (count++ === 0) await gate.promise;
      return posted;
    };
    return { platform, gate };
  };

  test.each(["vary", "upscale", "again", "delete"] as const)("does what it says: %s", async (name) => {
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

  test("fills the form, and what is sent with that starts from the picture", async () => {
    const { platform, gate } = held();
    const { accept, idle, channel, until, imagineMenu, calls } = await start({ platform });
    await accept(imagine("a fox"));
    await until(() => pictures(channel).length === 1);
    const basis = idOf(pictures(channel)[0]);
    const described = await imagineMenu.describe(basis, command("imagine"), new AbortController().signal);
    expect(described).toMatchObject({ prompt: "a fox", options: { basis } });
    await accept(imagine("at night", { options: { basis } }));
    gate.resolve();
    await idle();
    expect(calls[1]?.body.contents[0]?.parts).toMatchObject([{ text: "at night" }, { fileData: {} }]);
  });

  test("works when the process dies in between", async () => {
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

describe("Stop", () => {
  const gated = () => {
    const gate = Promise.withResolvers<void>();
    const meet: Meet = async (_, index) => (index < 1 ? undefined : gate.promise);
    return { gate, meet };
  };
  const status = (channel: readonly Shown[]) => channel.find(({ files }) => files.length === 0);

  test("keeps the pictures that are there, and Retry draws the rest", async () => {
    const { gate, meet } = gated();
    const { accept, idle, channel, until, texts } = await start({ meet });
    await accept(imagine("a fox --count 3"));
    await until(() => pictures(channel).length === 1);
    await accept(press("stop", status(channel), ben));
    expect(buttonsOf(status(channel))).toEqual([["stop", "Stop"]]);
    await accept(press("stop", status(channel)));
    await until(() => status(channel)?.draft.markdown.includes("are missing") === true);
    expect(status(channel)?.draft.markdown).toBe("2 of 3 pictures of `a fox` are missing.\n\nStopped.");
    expect(buttonsOf(status(channel))).toEqual([["retry", "Retry"]]);
    gate.resolve();
    await accept(press("retry", status(channel)));
    await idle();
    expect(pictures(channel)).toHaveLength(3);
    expect(texts()).toContainEqual(expect.stringContaining("Only the person who asked"));
  });

  test("ends a job that waits at once, and it is not drawn when its turn comes", async () => {
    const gate = Promise.withResolvers<void>();
    const { accept, idle, channel, until, calls } = await start({ meet: () => gate.promise });
    for (const prompt of ["one", "two", "three"]) await accept(imagine(prompt));
    const waiting = () => channel.find(({ draft }) => draft.markdown.startsWith("Waiting"));
    await until(() => waiting() !== undefined);
    const shown = waiting();
    await accept(press("stop", shown));
    await until(() => shown?.draft.markdown.includes("No picture of `three`.") === true);
    expect(shown?.draft.markdown).toContain("Stopped.");
    gate.resolve();
    await idle();
    expect(pictures(channel)).toHaveLength(2);
    expect(calls).toHaveLength(2);
    await accept(press("retry", shown));
    await idle();
    expect(pictures(channel)).toHaveLength(3);
  });

  test("ends a job that is taken up again after a crash", async () => {
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

test.skipIf(isOnRedis)(
  "a Stop that was taken in as the process died ends the job when it is gone on with",
  async () => {
    const database = new DatabaseSync(":memory:");
    const gate = Promise.withResolvers<void>();
    const meet: Meet = async (_, index) => (index < 1 ? undefined : gate.promise);
    const { accept, channel, until, queue, again } = await start({ meet, database });
    await accept(imagine("a fox --count 2"));
    await until(() => pictures(channel).length === 1);
    await queue.close(0);
    const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent });
    const jobs = createJobStore({ open, inTurn, ttlMs: 60_000, copies: noCopies, links: noLinks, log: silent });
    const [jobId = ""] = idOf(pictures(channel)[0]).split(".");
    await jobs.askStop(jobId, command("imagine"));
    await again().idle();
    gate.resolve();
    expect(channel.find(({ files }) => files.length === 0)?.draft.markdown).toContain("Stopped.");
    expect(pictures(channel)).toHaveLength(1);
    expect(await jobs.whoAskedStop(pictureJob({ id: jobId }))).toBeUndefined();
  },
);

describe("an interrupted job", () => {
  test("is finished by the next start: four pictures, none twice", async () => {
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
    expect(channel.map(({ nonce }) => nonce.replace(/^.*:/, "")).toSorted()).toEqual(["1", "2", "3", "4"]);
    expect(channel.every(({ files }) => files.length === 1)).toBe(true);
    expect(calls.length).toBeLessThanOrEqual(6);
  });

  test("between the upload and its record shows the picture once", async () => {
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

describe("bounds", () => {
  test("let one person draw two jobs at a time, the others in order, and hold up no conversation", async () => {
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
    await until(() => texts().some((text) => text.includes("I am Palaver")));
    expect(channel.filter(({ draft }) => draft.markdown.startsWith("Drawing"))).toHaveLength(3);
    expect(texts().filter((text) => text.startsWith("Waiting"))).toHaveLength(2);
    gate.resolve();
    await idle();
    expect(pictures(channel)).toHaveLength(5);
    expect(channel.filter(({ files }) => files.length === 0)).toHaveLength(1);
    expect(prompts.slice(0, 3).toSorted()).toEqual(["by ben", "one", "two"]);
    expect(prompts.slice(3)).toEqual(["three", "four"]);
  });
});
