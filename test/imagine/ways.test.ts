import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { noLinks } from "../../lab/support/picture-turn.ts";
import { createReferences } from "../../src/media/reference.ts";
import { createReadPicture } from "../../src/media/reference-picture.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { picture } from "../sandbox/sandbox.ts";
import { type Answer, json, startFaultServer } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

const IMAGES = "/v1/images/generations";
const EDITS = "/v1/images/edits";
const GOOGLE = "/v1beta/models/painter:generateContent";
const REFERENCE: AttachmentRef = { platform: "test", id: "given", name: "cat.png", sizeBytes: 100 };

const png = await picture("red");
const byImages = json(200, { data: [{ b64_json: png.toString("base64") }] });

/**
 * The bot with a gateway that has only these paths. The gateway cannot fetch anything, because there is no PUBLIC_URL.
 */
async function start(paths: Record<string, Answer>) {
  const unknown = json(404, {
    error: { message: "Not Found", type: "invalid_request_error", code: null, param: null },
  });
  const server = await startFaultServer((response, received) => (paths[received.path] ?? unknown)(response, received));
  const platform = fakePlatform();
  const references = createReferences({
    adapterOf: () => ({}),
    relay: { ...noLinks, publish: () => Promise.reject(new Error("No link may be made.")) },
    relayUrl: () => undefined,
    maxReferences: 16,
    read: createReadPicture(async () => toSource(png)),
  });
  const database = new DatabaseSync(":memory:");
  const gateway = connect(server.url);
  const engine = startEngine({ gateway, references, platform, database, model: "m", imageModel: "painter" });
  const imagine = async (text: string, attachments: AttachmentRef[] = []) => {
    await engine.accept({ ...command("imagine", text), attachments });
    await engine.idle();
    return platform.channel.at(-1)?.draft.markdown ?? "";
  };
  return { ...server, imagine, channel: platform.channel };
}

async function* toSource(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function refuse(message: string, more: object = {}): Answer {
  return json(400, { error: { message, type: "invalid_request_error", code: null, param: null, ...more } });
}

describe("/imagine with a gateway without generateContent", () => {
  test("/imagine creates images from words, and from a private image without a public address", async () => {
    const { imagine, received, channel } = await start({ [IMAGES]: byImages, [EDITS]: byImages });
    expect(await imagine("a boat")).toContain("`a boat` · `painter`");
    await imagine("a boat at night", [REFERENCE]);
    expect(channel.map(({ files }) => files[0]?.name)).toEqual(["a-boat.png", "a-boat-at-night.png"]);
    const file = received.at(-1)?.form?.get("image");
    expect(file instanceof File && Buffer.from(await file.arrayBuffer()).equals(png)).toBe(true);
  });

  test("/imagine says in the caption that the model does not support the requested ratio", async () => {
    const refused = refuse("Invalid value: '2048x512'.", { param: "size" });
    const strict: Answer = (response, received) =>
      ("size" in (received.json as object) ? refused : byImages)(response, received);
    const { imagine } = await start({ [IMAGES]: strict });
    const caption = await imagine("a boat --ar 4:1");
    expect(caption).toContain("`a boat` · `painter` · without 4:1, which this model does not support · ");
    expect(await imagine("a boat")).not.toContain("without");
  });
});

test("/imagine needs a public address only if the gateway has nothing but generateContent", async () => {
  const { imagine } = await start({ [GOOGLE]: json(200, { inlineData: { data: png.toString("base64") } }) });
  expect(await imagine("a boat at night", [REFERENCE])).toMatch(/cat\.png.* PUBLIC_URL/s);
});
