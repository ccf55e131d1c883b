/** Attacks with a reference image by users, platforms and networks. Each ends in one sentence, and nothing leaks. */

import { DatabaseSync } from "node:sqlite";
import { crc32, deflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { owner } from "../../lab/support/picture-turn.ts";
import { createLogger } from "../../src/log/log.ts";
import { createGuardedFetch, type GuardedFetchOptions } from "../../src/media/fetch.ts";
import { createReferences } from "../../src/media/reference.ts";
import { createReadPicture } from "../../src/media/reference-picture.ts";
import { createRelay } from "../../src/media/relay.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { picture } from "../sandbox/sandbox.ts";
import { type Answer, drip, type FileServer, sendEndlessly, serveAnswers } from "../support/file-server.ts";

const never = new AbortController().signal;
const TOKEN = "xoxb-1234567890-secret";
const png = await picture("red");

/** A platform whose private files need a token, and the whole way from an attachment to a link. */
function setUp(server: FileServer, options: Partial<GuardedFetchOptions> = {}) {
  const lines: string[] = [];
  const log = createLogger({
    level: "trace",
    secrets: [],
    tokens: [],
    destination: { write: (line) => void lines.push(line) },
  });
  const fetch = createGuardedFetch({
    owner: "Slack",
    hosts: ["files.example.com"],
    origins: [server.origin],
    ...options,
  });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const read = createReadPicture(({ id }, signal) => fetch.open(id, { headers, maxBytes: 20 * 1024 * 1024 }, signal));
  const database = new DatabaseSync(":memory:");
  const { open } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const relay = createRelay({ keys: ["k".repeat(32)], open, read, isGone: async () => false, log, now: Date.now });
  const references = createReferences({
    adapterOf: () => ({}),
    relay,
    relayUrl: () => "https://bot.example",
    maxReferences: 8,
    read,
  });
  const prepare = (id: string, name = "cat.png") =>
    references.prepare([{ platform: "slack", id, name, sizeBytes: 100 }], owner, never);
  return { prepare, relay, lines };
}

/** The sentence in which an attack ends. Checks that there is only one, and that it reveals nothing. */
async function sentenceFor(answer: Answer, id = "/cat.png", options = {}): Promise<string> {
  const server = await serveAnswers({ "/cat.png": answer });
  const { prepare, lines } = setUp(server, options);
  const prepared = await prepare(id.startsWith("/") ? server.origin + id : id);
  if (prepared.ok) throw new Error("It went through.");
  const [sentence = "", ...others] = prepared.problems;
  expect(others).toEqual([]);
  expect(sentence).toMatch(/^I can't use `cat\.png` as a reference: it [^\n]+\.$/);
  expect(sentence + lines.join("")).not.toMatch(/xoxb|127\.0\.0\.1|169\.254|signin|hidden|https?:/);
  return sentence;
}

function send(bytes: Uint8Array | string, contentType = "image/png"): Answer {
  return (response) => response.writeHead(200, { "content-type": contentType }).end(bytes);
}

/** A PNG whose header claims a size. */
function toClaimingPng(width: number, height: number): Buffer {
  const claiming = Buffer.from(png);
  claiming.writeUInt32BE(width, 16);
  claiming.writeUInt32BE(height, 20);
  claiming.writeUInt32BE(crc32(claiming.subarray(12, 29)), 29);
  return claiming;
}

const redirect =
  (status: number, location: string): Answer =>
  (response) =>
    response.writeHead(status, { location }).end();
const truncated: Answer = (response) => {
  response.writeHead(200, { "content-length": png.length });
  response.write(png.subarray(0, 20), () => response.destroy());
};
const compressed: Answer = (response) => response.writeHead(200, { "content-encoding": "gzip" }).end(deflateSync(png));

describe("a hostile platform", () => {
  test.each<[string, Answer, string, Partial<GuardedFetchOptions>?]>([
    ["sends a login page", send("<!doctype html><title>hidden</title>", "text/html; charset=utf-8"), "sent a web page"],
    ["sends a login page with an image type", send("<!doctype html><html><title>hidden</title>"), "is a web page"],
    ["redirects to a login page", redirect(302, "https://slack.example/signin?redir=hidden"), "another page"],
    [
      "redirects to a cloud's metadata service",
      redirect(307, "http://169.254.169.254/latest/meta-data"),
      "another page",
    ],
    ["redirects to itself", redirect(301, "/hidden"), "another page"],
    [
      "announces two gigabytes",
      (response) => sendEndlessly(response, { "content-length": 2 ** 31 }),
      "larger than 20 MiB",
    ],
    ["sends an endless file", (response) => sendEndlessly(response), "is larger than 20 MiB"],
    ["sends a file byte by byte", drip, "took too long to arrive", { totalTimeoutMs: 200 }],
    ["never sends the file", () => {}, "took too long to arrive", { totalTimeoutMs: 100 }],
    ["closes the connection in the middle of a file", truncated, "could not be fetched"],
    ["sends a compression bomb", compressed, "compressed it without being asked"],
  ])("the user reads one sentence if the platform %s", async (_, answer, words, options) => {
    expect(await sentenceFor(answer, "/cat.png", options)).toContain(words);
  });
});

describe("a hostile attachment", () => {
  test.each([
    "http://169.254.169.254/latest/meta-data",
    "http://127.0.0.1:1/hidden",
    "https://evil.example/hidden",
    "file:///etc/passwd",
    "not an address",
  ])("the reader does not fetch an attachment at %s", async (id) => {
    expect(await sentenceFor(send(png), id)).toContain("is not hosted by Slack");
  });

  test("the reader does not fetch an attachment at a name that resolves into the private network", async () => {
    const server = await serveAnswers({});
    const { prepare } = setUp(server, {
      resolve: (_, answer) => answer(null, [{ address: "169.254.169.254", family: 4 }]),
    });
    expect(await prepare("https://files.example.com/cat.png")).toEqual({
      ok: false,
      problems: [expect.stringMatching(/at a private network address/) as unknown],
    });
  });

  test("the reader judges an attachment with a misleading name by its bytes", async () => {
    expect(await sentenceFor(send("#!/bin/sh\nrm -rf hidden", "image/png"))).toContain("is text, not an image");
    expect(await sentenceFor(send(Buffer.from("MZ\x90\0\x03\0\0\0\x04\0", "latin1")))).toContain("is not an image");
  });

  test("the reader does not decode an image that claims three billion pixels", async () => {
    expect(await sentenceFor(send(toClaimingPng(60_000, 60_000)))).toContain("more than 50 million pixels");
  });

  test("the reader reports an image that claims more pixels than it contains as damaged", async () => {
    expect(await sentenceFor(send(toClaimingPng(4_000, 9_000)))).toContain("is damaged or incomplete");
  });

  test("the reader never opens an SVG that refers to other files", async () => {
    const server = await serveAnswers({
      "/cat.png": (response, request) => {
        const links = [`http://${request.headers.host}/hidden.png`, "file:///etc/passwd"];
        const images = links.map((link) => `<image href="${link}" xlink:href="${link}"/>`).join("");
        response.end(
          `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">${images}</svg>`,
        );
      },
      "/hidden.png": send(png),
    });
    const { prepare } = setUp(server);
    expect(await prepare(`${server.origin}/cat.png`)).toEqual({
      ok: false,
      problems: [expect.stringMatching(/is an SVG drawing/) as unknown],
    });
    expect(server.requests.map(({ url }) => url)).toEqual(["/cat.png"]);
  });

  test("the reader refuses a file that is a page first and an image second", async () => {
    const both = Buffer.concat([Buffer.from("<html><script>hidden</script><!--"), png]);
    expect(await sentenceFor(send(both))).toContain("is not an image");
  });

  test("the gateway gets a file that is an image first and a page second as an image only", async () => {
    const both = Buffer.concat([png, Buffer.from("<html><script>alert(1)</script>")]);
    const server = await serveAnswers({ "/cat.html": send(both, "text/plain") });
    const { prepare, relay } = setUp(server);
    const prepared = await prepare(`${server.origin}/cat.html`, "cat.html");
    if (!prepared.ok) throw new Error(prepared.problems.join());
    const [{ fileUri, mimeType } = { fileUri: "", mimeType: "" }] = prepared.parts;
    expect([mimeType, fileUri.endsWith("/picture.png")]).toEqual(["image/png", true]);
    expect((await relay.open(new URL(fileUri).pathname, never))?.mimeType).toBe("image/png");
  });
});

test("only the platform gets the token, and the link contains neither token nor address", async () => {
  const server = await serveAnswers({ "/private.png": send(png) });
  const { prepare, lines } = setUp(server);
  const prepared = await prepare(`${server.origin}/private.png`);
  if (!prepared.ok) throw new Error(prepared.problems.join());
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${TOKEN}`]);
  const [{ fileUri } = { fileUri: "" }] = prepared.parts;
  expect(fileUri).toMatch(/^https:\/\/bot\.example\/relay\/v1\/[\w-]{72}\/picture\.png$/);
  expect(lines).toEqual([]);
});
