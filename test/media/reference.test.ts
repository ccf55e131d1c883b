import { describe, expect, test } from "vitest";
import { noLinks, owner } from "../../lab/support/picture-turn.ts";
import { createReferences, type ReferencesDeps } from "../../src/media/reference.ts";
import type { ReferencePicture } from "../../src/media/reference-picture.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { AttachmentRef } from "../../src/port/events.ts";

const never = new AbortController().signal;

function toRef(platform: string, name: string): AttachmentRef {
  return { platform, id: `id of ${name}`, name, sizeBytes: 10 };
}

/** The result of reading a file, by its name. */
const FOUND: Readonly<Record<string, ReferencePicture | { problem: string }>> = {
  "as-it-is.png": toFound("image/png", "image/png", false),
  "lies.jpg": toFound("image/webp", "image/webp", false),
  "animated.gif": toFound("image/png", "image/gif", true),
  "scan.tiff": toFound("image/png", undefined, true),
  "drawing.svg": { problem: "is an SVG drawing, which is not supported; send it as PNG" },
};

function toFound(
  mimeType: ReferencePicture["mimeType"],
  originalType: ReferencePicture["originalType"],
  isChanged: boolean,
): ReferencePicture {
  return { bytes: new Uint8Array(1), mimeType, originalType, isChanged };
}

/** Discord's files have public links, but Slack's files have none. */
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
      if (adapter === undefined) throw new Error("not turned on");
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
      return FOUND[name] ?? { problem: "is not an image" };
    },
    ...options,
  });
  return { ...references, adapters, read, published };
}

describe("the references of an image request", () => {
  test("a request uses a link that can expire at any time only if the relay cannot serve the file", async () => {
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
    const said = "is no longer available from its platform";
    expect(await alone.prepare(refs, owner, never)).toMatchObject({ problems: [expect.stringContaining(said)] });
  });

  test("a request uses the platform's own link with the type of the bytes if the image needs no change", async () => {
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

  test("a request uses the relay for private and converted images, in their order", async () => {
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
        { fileUri: "https://bot.example/relay/v1/1/picture.webp", mimeType: "image/webp" },
        { fileUri: "https://cdn.example/as-it-is.png?hm=mark", mimeType: "image/png" },
        { fileUri: "https://bot.example/relay/v1/2/picture.png", mimeType: "image/png" },
        { fileUri: "https://bot.example/relay/v1/3/picture.png", mimeType: "image/png" },
      ],
    });
  });

  test("the error names the file that needs PUBLIC_URL, and the file is not read", async () => {
    const { prepare, read } = setUp({ relayUrl: () => undefined });
    const prepared = await prepare([toRef("slack", "as-it-is.png"), toRef("discord", "as-it-is.png")], owner, never);
    expect(prepared).toEqual({
      ok: false,
      problems: [expect.stringMatching(/^I can't use `as-it-is\.png`.*PUBLIC_URL is set.*\.$/) as unknown],
    });
    expect(read).toEqual(["as-it-is.png"]);
  });

  test("if the relay cannot serve a public file that should be converted, the request sends the file unchanged", async () => {
    const { prepare } = setUp({ relayUrl: () => undefined });
    expect(await prepare([toRef("discord", "animated.gif")], owner, never)).toEqual({
      ok: true,
      parts: [{ fileUri: "https://cdn.example/animated.gif?hm=mark", mimeType: "image/gif" }],
    });
    expect(await prepare([toRef("discord", "scan.tiff")], owner, never)).toEqual({
      ok: false,
      problems: [expect.stringMatching(/`scan\.tiff` .* must be converted first.*PUBLIC_URL/) as unknown],
    });
  });

  test("each unusable file has one sentence, in order, and the other files get no link", async () => {
    const { prepare } = setUp();
    const names = ["drawing.svg", "as-it-is.png", "evil`name<x>.exe"];
    const prepared = await prepare([...names.map((name) => toRef("slack", name)), toRef("irc", "a.png")], owner, never);
    expect(prepared).toEqual({
      ok: false,
      problems: [
        "I can't use `drawing.svg` as a reference: it is an SVG drawing, which is not supported; send it as PNG.",
        "I can't use `evil'name_x_.exe` as a reference: it is not an image.",
        "I can't use `a.png` as a reference: it is stored on irc, which is not connected.",
      ],
    });
  });

  test("a request with too many references reads none of them", async () => {
    const { prepare, read } = setUp({ maxReferences: 1 });
    const refs = [toRef("slack", "as-it-is.png"), toRef("slack", "lies.jpg")];
    expect(await prepare(refs, owner, never)).toEqual({
      ok: false,
      problems: ["2 images is too many: I can use at most 1."],
    });
    expect(read).toEqual([]);
  });

  test("a problem never repeats a platform's response about a link", async () => {
    const { prepare, adapters } = setUp();
    const discord = adapters["discord"];
    if (discord !== undefined) discord.publicUrl = () => Promise.reject(new Error("https://cdn.example/?hm=mark"));
    expect(await prepare([toRef("discord", "as-it-is.png")], owner, never)).toEqual({
      ok: false,
      problems: ["I can't use `as-it-is.png` as a reference: it could not be fetched; attach it again."],
    });
  });

  test("preparing references fails with the store, and rejects if the caller leaves", async () => {
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

  test("a request contains private files as bytes if the service has no address for links", async () => {
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
        expect.stringMatching(/^I can't use `drawing\.svg` as a reference: it is an SVG/),
        "I can't use `a.png` as a reference: it is stored on irc, which is not connected.",
      ],
    });
  });

  test("a request with an empty list of references prepares nothing", async () => {
    expect(await setUp().prepare([], owner, never)).toEqual({ ok: true, parts: [] });
  });
});
