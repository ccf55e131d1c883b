import { describe, expect, test } from "vitest";
import { createReferences, type ReferencesDeps } from "../../src/media/reference.ts";
import type { ReferencePicture } from "../../src/media/reference-picture.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { noLinks, owner } from "../support/picture-job.ts";

const never = new AbortController().signal;

function toRef(platform: string, name: string): AttachmentRef {
  return { platform, id: `id of ${name}`, name, sizeBytes: 10 };
}

/** What reading a file finds, by its name. */
const FOUND: Readonly<Record<string, ReferencePicture | { problem: string }>> = {
  "as-it-is.png": toFound("image/png", "image/png", false),
  "lies.jpg": toFound("image/webp", "image/webp", false),
  "animated.gif": toFound("image/png", "image/gif", true),
  "scan.tiff": toFound("image/png", undefined, true),
  "drawing.svg": { problem: "is an SVG drawing, which is not opened here; send it as PNG" },
};

function toFound(
  mimeType: ReferencePicture["mimeType"],
  originalType: ReferencePicture["originalType"],
  isChanged: boolean,
): ReferencePicture {
  return { bytes: new Uint8Array(1), mimeType, originalType, isChanged };
}

/** Discord, whose files have public links, and Slack, whose files have none. */
function setUp(options: Partial<ReferencesDeps> = {}) {
  const read: string[] = [];
  const published: string[] = [];
  const adapters: Record<string, Pick<Adapter, "publicUrl">> = {
    discord: { publicUrl: async ({ name }) => `https://cdn.example/${name}?hm=mark` },
    slack: {},
  };
  const references = createReferences({
    adapterOf(platform) {
      const adapter = adapters[platform];
      if (adapter === undefined) throw new Error("not switched on");
      return adapter;
    },
    relay: {
      ...noLinks,
      async publish({ name }, { mimeType }) {
        published.push(name);
        return `/relay/v1/${published.length}/picture.${mimeType.replace("image/", "")}`;
      },
    },
    relayUrl: () => "https://bot.example",
    maxReferences: 8,
    async read({ name }) {
      read.push(name);
      return FOUND[name] ?? { problem: "is no picture" };
    },
    ...options,
  });
  return { ...references, adapters, read, published };
}

describe("createReferences", () => {
  test("uses no link that may end any time, where there is a better", async () => {
    const { prepare, published } = setUp();
    const refs: AttachmentRef[] = [{ ...toRef("discord", "as-it-is.png"), isFleeting: true }];
    expect(await prepare(refs, owner, never)).toMatchObject({ ok: true, parts: [{ mimeType: "image/png" }] });
    expect(published).toEqual(["as-it-is.png"]);
    const alone = setUp({ relayUrl: () => undefined });
    expect(await alone.prepare(refs, owner, never)).toMatchObject({
      parts: [{ fileUri: expect.stringContaining("cdn") }],
    });
    const discord = alone.adapters["discord"];
    if (discord !== undefined) discord.publicUrl = () => Promise.reject(new Error("gone"));
    const said = "was kept by its platform for a while only";
    expect(await alone.prepare(refs, owner, never)).toMatchObject({ problems: [expect.stringContaining(said)] });
  });

  test("uses the platform's own link where the bytes need no change, with the type of the bytes", async () => {
    const { prepare, published } = setUp();
    const refs = [toRef("discord", "as-it-is.png"), toRef("discord", "lies.jpg")];
    expect(await prepare(refs, owner, never)).toEqual({
      ok: true,
      parts: [
        { fileUri: "https://cdn.example/as-it-is.png?hm=mark", mimeType: "image/png" },
        { fileUri: "https://cdn.example/lies.jpg?hm=mark", mimeType: "image/webp" },
      ],
    });
    expect(published).toEqual([]);
  });

  test("relays what is private, and what had to be changed, and keeps the order", async () => {
    const { prepare } = setUp();
    const refs = [
      toRef("slack", "lies.jpg"),
      toRef("discord", "as-it-is.png"),
      toRef("discord", "animated.gif"),
      toRef("slack", "scan.tiff"),
    ];
    expect(await prepare(refs, owner, never)).toEqual({
      ok: true,
      parts: [
        {
          fileUri: expect.stringMatching(/^https:\/\/bot\.example\/relay\/.*\.webp$/) as unknown,
          mimeType: "image/webp",
        },
        { fileUri: "https://cdn.example/as-it-is.png?hm=mark", mimeType: "image/png" },
        {
          fileUri: expect.stringMatching(/^https:\/\/bot\.example\/relay\/.*\.png$/) as unknown,
          mimeType: "image/png",
        },
        {
          fileUri: expect.stringMatching(/^https:\/\/bot\.example\/relay\/.*\.png$/) as unknown,
          mimeType: "image/png",
        },
      ],
    });
  });

  test("says which file needs PUBLIC_URL, without reading it", async () => {
    const { prepare, read } = setUp({ relayUrl: () => undefined });
    const prepared = await prepare([toRef("slack", "as-it-is.png"), toRef("discord", "as-it-is.png")], owner, never);
    expect(prepared).toEqual({
      ok: false,
      problems: [expect.stringMatching(/^`as-it-is\.png` cannot be used.*PUBLIC_URL is set.*\.$/) as unknown],
    });
    expect(read).toEqual(["as-it-is.png"]);
  });

  test("lets the gateway judge a public file that would better be changed, where it cannot be relayed", async () => {
    const { prepare } = setUp({ relayUrl: () => undefined });
    expect(await prepare([toRef("discord", "animated.gif")], owner, never)).toEqual({
      ok: true,
      parts: [{ fileUri: "https://cdn.example/animated.gif?hm=mark", mimeType: "image/gif" }],
    });
    expect(await prepare([toRef("discord", "scan.tiff")], owner, never)).toEqual({
      ok: false,
      problems: [expect.stringMatching(/^`scan\.tiff` .* has to be converted first.*PUBLIC_URL/) as unknown],
    });
  });

  test("has one sentence for each file that cannot be used, in their order, and no link for the others", async () => {
    const { prepare } = setUp();
    const names = ["drawing.svg", "as-it-is.png", "evil`name<x>.exe"];
    const prepared = await prepare([...names.map((name) => toRef("slack", name)), toRef("irc", "a.png")], owner, never);
    expect(prepared).toEqual({
      ok: false,
      problems: [
        "`drawing.svg` cannot be used as a reference: it is an SVG drawing, which is not opened here; send it as PNG.",
        "`evil'name_x_.exe` cannot be used as a reference: it is no picture.",
        "`a.png` cannot be used as a reference: it is kept on irc, which is not switched on.",
      ],
    });
  });

  test("takes no more than it may, and reads nothing then", async () => {
    const { prepare, read } = setUp({ maxReferences: 1 });
    const refs = [toRef("slack", "as-it-is.png"), toRef("slack", "lies.jpg")];
    expect(await prepare(refs, owner, never)).toEqual({
      ok: false,
      problems: ["2 pictures are too many: at most 1 can be used."],
    });
    expect(read).toEqual([]);
  });

  test("does not repeat what a platform says about a link", async () => {
    const { prepare, adapters } = setUp();
    const discord = adapters["discord"];
    if (discord !== undefined) discord.publicUrl = () => Promise.reject(new Error("https://cdn.example/?hm=mark"));
    expect(await prepare([toRef("discord", "as-it-is.png")], owner, never)).toEqual({
      ok: false,
      problems: ["`as-it-is.png` cannot be used as a reference: it could not be fetched; attach it again."],
    });
  });

  test("fails when the store does, and leaves with the caller", async () => {
    const relay = { ...noLinks, publish: () => Promise.reject(new Error("The store is away.")) };
    await expect(setUp({ relay }).prepare([toRef("slack", "lies.jpg")], owner, never)).rejects.toThrow(
      "The store is away.",
    );
    const read: ReferencesDeps["read"] = async (_ref, _owner, signal) => {
      signal.throwIfAborted();
      return { problem: "" };
    };
    const left = AbortSignal.abort(new Error("I left."));
    await expect(setUp({ read }).prepare([toRef("slack", "lies.jpg")], owner, left)).rejects.toThrow("I left.");
  });

  test("gives the bytes of private files where there is no address for links", async () => {
    const { load, published } = setUp({ relayUrl: () => undefined });
    expect(await load([toRef("slack", "lies.jpg"), toRef("discord", "scan.tiff")], owner, never)).toEqual({
      ok: true,
      parts: [
        { mimeType: "image/webp", bytes: new Uint8Array(1) },
        { mimeType: "image/png", bytes: new Uint8Array(1) },
      ],
    });
    expect(published).toEqual([]);
    expect(await load([toRef("slack", "drawing.svg"), toRef("irc", "a.png")], owner, never)).toEqual({
      ok: false,
      problems: [
        expect.stringMatching(/^`drawing\.svg` cannot be used as a reference: it is an SVG/),
        "`a.png` cannot be used as a reference: it is kept on irc, which is not switched on.",
      ],
    });
  });

  test("does nothing for no files", async () => {
    expect(await setUp().prepare([], owner, never)).toEqual({ ok: true, parts: [] });
  });
});
