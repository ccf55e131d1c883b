import { DatabaseSync } from "node:sqlite";
import sharp from "sharp";
import { describe, expect, onTestFinished, test } from "vitest";
import { openBotStores, readKept } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { linked, owner } from "../../lab/support/picture-turn.ts";
import { chooseRelayUrl, createPictureSources } from "../../src/app/picture-sources.ts";
import { FileProblem } from "../../src/media/file-problem.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { ActionEvent, AttachmentRef } from "../../src/port/events.ts";
import { startServer } from "../http/http.ts";
import { picture, start } from "../sandbox/sandbox.ts";
import { readConfig } from "../support/config.ts";
import { connect } from "../support/gateway-client.ts";
import { startImageGateway } from "../support/image-gateway.ts";

const never = new AbortController().signal;
const HERE = "http://127.0.0.1:3000";

/** All gateways except the embedded sandbox need this address. */
const REAL = { GATEWAY_API_KEY: "key", CHAT_MODEL: "m" };

describe("the address of the relay for images", () => {
  test.each([
    ["the embedded sandbox", {}, HERE],
    ["the embedded sandbox, even with a public address", { PUBLIC_URL: "https://bot.example/" }, HERE],
    ["a gateway on this machine", { ...REAL, GATEWAY_BASE_URL: "http://localhost:8787" }, HERE],
    ["a gateway elsewhere", { ...REAL, GATEWAY_BASE_URL: "https://gateway.example" }, undefined],
    [
      "a gateway elsewhere, with a public address",
      { ...REAL, GATEWAY_BASE_URL: "https://gateway.example", PUBLIC_URL: "https://bot.example/" },
      "https://bot.example",
    ],
  ])("chooseRelayUrl finds the address of the service for %s", (_, env, url) => {
    expect(chooseRelayUrl(readConfig(env), HERE)).toBe(url);
  });
});

/** Sources with files that the sandbox gateway can fetch, on a platform that opens files this way. */
async function startSources(openAttachment: Adapter["openAttachment"]) {
  const platform = fakePlatform();
  const adapter: Adapter = { ...platform.adapter, openAttachment };
  const database = new DatabaseSync(":memory:");
  let serviceUrl: string | undefined;
  const { references, routes } = createPictureSources({
    config: readConfig({}),
    adapterOf: () => adapter,
    stores: openBotStores(database),
    ownKey: "k".repeat(32),
    serviceUrl: () => serviceUrl,
    log: silent,
  });
  const server = await startServer({ mounts: [routes] });
  serviceUrl = server.url;
  const sandbox = await start({ trustedFileOrigins: [server.url] });
  const gateway = connect(sandbox.url, { apiKey: "sk-sandbox-all" });
  return { platform, adapter, database, references, gateway };
}

/** Sources for one image, links to it, and the platform's response when it is asked again. */
async function startLinks() {
  const bytes = await picture("red");
  let failure: Error | undefined;
  const sources = await startSources(async () => {
    if (failure !== undefined) throw failure;
    return toSource(bytes);
  });
  const ref = { platform: "test", id: "1", name: "a.png", sizeBytes: bytes.length };
  return {
    ...sources,
    ref,
    fail: (error: Error) => void (failure = error),
    async toLink(authorId: string): Promise<string> {
      const prepared = await sources.references.prepare([ref], { turnId: "j1", platform: "test", authorId }, never);
      const [part] = prepared.ok ? prepared.parts : [];
      if (part === undefined) throw new Error("There is no link.");
      return part.fileUri;
    },
  };
}

async function* toSource(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

describe("the sources of images", () => {
  test("the sandbox uses a private image as a source without any configured address", async () => {
    const webp = await sharp({ create: { width: 64, height: 64, channels: 3, background: "red" } })
      .webp()
      .toBuffer();
    const { references, gateway } = await startSources(async () => toSource(webp));
    const ref = { platform: "fake", id: "1", name: "lies.png", sizeBytes: webp.length };
    const prepared = await references.prepare([ref], owner, never);
    if (!prepared.ok) throw new Error(prepared.problems.join());
    expect(prepared.parts[0]).toMatchObject({ mimeType: "image/webp" });
    const { text } = await gateway.generateImage(
      { model: "sandbox-image", prompt: "a cat", references: linked(...prepared.parts) },
      never,
    );
    expect(text).toContain("1 reference picture");
  });

  test("erasing a person ends the links to their source files", async () => {
    const { references, platform, database, adapter, gateway, toLink } = await startLinks();
    const { accept, idle } = startEngine({ gateway, references, platform, database, adapterOf: () => adapter });
    const [mine, others] = [await toLink("ada"), await toLink("ben")];
    await accept(command("forget", "me for good"));
    await idle();
    expect([(await fetch(mine)).status, (await fetch(others)).status]).toEqual([404, 200]);
  });

  test.each([
    ["failed", 400],
    ["is being drawn", undefined],
  ])("forgetting a conversation ends the links of an image that %s, and erases the request", async (_, status) => {
    const { references, platform, database, adapter, ref } = await startLinks();
    const asked = Promise.withResolvers<string>();
    const end = Promise.withResolvers<undefined>();
    onTestFinished(() => end.resolve(undefined));
    const { gateway } = await startImageGateway(undefined, {
      meet: async ({ body }) => {
        asked.resolve(body.contents[0]?.parts[1]?.fileData?.fileUri ?? "");
        return status === undefined ? end.promise : { status, body: { error: { message: "No." } } };
      },
    });
    const options = { gateway, references, platform, database, adapterOf: () => adapter };
    const { accept, idle, texts, until } = startEngine({ ...options, imageModel: "sandbox-image" });
    await accept({ ...command("imagine", "a marmalade fox"), attachments: [ref] });
    const link = await asked.promise;
    if (status !== undefined) await idle();
    expect((await fetch(link)).status).toBe(200);
    await accept(command("forget", "conversation"));
    await until(() => texts().some((text) => text.includes("Erased 1 message from this conversation.")));
    await idle();
    expect((await fetch(link)).status).toBe(404);
    expect((await readKept(database)).join("\n")).not.toContain("marmalade");
  });

  test("erasing a conversation cancels an image that waits for its turn, and removes its message", async () => {
    const { references, platform, database, adapter } = await startLinks();
    const end = Promise.withResolvers<undefined>();
    onTestFinished(() => end.resolve(undefined));
    const { gateway } = await startImageGateway(undefined, { meet: () => end.promise });
    const options = { gateway, references, platform, database, adapterOf: () => adapter };
    const { accept, idle, texts, until } = startEngine({ ...options, imageModel: "sandbox-image" });
    const isWaiting = (text: string) => text.startsWith("Waiting for other images");
    for (let asked = 0; !texts().some(isWaiting); asked++) {
      await accept(command("imagine", `a marmalade fox ${asked}`));
      await new Promise(setImmediate);
    }
    await accept(command("forget", "conversation"));
    await until(() => texts().some((text) => text.includes("from this conversation.")));
    await idle();
    end.resolve(undefined);
    expect(texts().filter(isWaiting)).toEqual([]);
    expect((await readKept(database)).join("\n")).not.toContain("marmalade");
  });

  test("deleting a message, or removing its files by an edit, ends the links to these files", async () => {
    const { references, platform, database, adapter, gateway, toLink, ref } = await startLinks();
    const { accept, idle } = startEngine({ gateway, references, platform, database, adapterOf: () => adapter });
    const [first, second] = [message("one"), message("two")];
    for (const event of [first, second]) {
      event.attachments = [ref];
      await accept(event);
    }
    await idle();
    const statuses = async (links: string[]) => Promise.all(links.map(async (link) => (await fetch(link)).status));
    const links = [await toLink("ada"), await toLink("ada")];
    await accept(edited(first, "one, again"));
    await idle();
    expect(await statuses(links)).toEqual([200, 200]);
    await accept({ ...edited(first, "one"), attachments: [] });
    await idle();
    expect(await statuses(links)).toEqual([404, 404]);

    const later = [await toLink("ada")];
    expect(await statuses(later)).toEqual([200]);
    await accept(deleted(second));
    await idle();
    expect(await statuses(later)).toEqual([404]);
  });

  test("the relay asks the platform whether a file still exists, and ignores a failure to answer", async () => {
    const { toLink, fail } = await startLinks();
    const link = await toLink("ada");
    fail(new Error("It could not be fetched.", { cause: new FileProblem("unavailable", "could not be fetched") }));
    expect((await fetch(link)).status).toBe(200);
    fail(new Error("It cannot be opened.", { cause: new FileProblem("gone", "no longer exists") }));
    expect((await fetch(link)).status).toBe(404);
  });

  test("the relay opens a file that the platform deleted from its copy while the job is stored", async () => {
    const bytes = await picture("red");
    let isKept = true;
    const { platform, adapter, database, references, gateway } = await startSources(async ({ id }) => {
      const file = platform.findFile(id);
      if (file !== undefined) return toSource(file.bytes);
      if (!isKept) throw new Error("It is gone.");
      return toSource(bytes);
    });
    const options = { gateway, references, platform, database, adapterOf: () => adapter };
    const { accept, idle, channel, texts, queue } = startEngine({ ...options, imageModel: "sandbox-image" });
    const ref: AttachmentRef = { platform: "test", id: "upload", name: "a.png", sizeBytes: 100, isFleeting: true };
    await accept({ ...command("imagine", "a fox"), attachments: [ref] });
    await idle();
    isKept = false;
    await queue.close(0);

    const later = startEngine({ ...options, imageModel: "sandbox-image" });
    const press = (name: ActionEvent["action"]) => action(name, channel[0]?.draft.buttons[0]?.turnId ?? "");
    // One after the other, because two concurrent jobs can finish in any order.
    for (const name of ["again", "vary"] as const) {
      await later.accept(press(name));
      await later.idle();
    }
    expect(texts().map((text) => /\d reference pictures?/.exec(text)?.[0])).toEqual([
      "1 reference picture",
      "1 reference picture",
      "2 reference pictures",
    ]);

    await later.accept(command("forget", "me for good", { conversationId: "test:b" }));
    await later.idle();
    await later.accept({ ...command("imagine", "a cat", { author: ben }), attachments: [ref] });
    await later.idle();
    expect(texts().at(-1)).toContain("I can't use `a.png` as a reference");
  });
});
